"""A conditional random field: learn to clean pictures from examples, and say how likely others are.

    python examples/random_field.py --pictures 40 --out pictures

Each pixel is a variable of two states, and what is seen of it, through noise, its covariate.  Two numbers per covariate
and one table for all pairs of neighbours are learned from pictures whose pixels are known: exactly, and by a certified
bound on the likelihood.  Pixels that know nothing of their neighbours are learned beside them.  The likelihood of
pictures that were held out comes with its bracket.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import clampz as cz

SIZE = 7


def blobs(rng, number):
    """Pictures (number, SIZE, SIZE) of a disk or two, and what is seen of them."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    pictures = np.zeros((number, SIZE, SIZE), dtype=int)
    for picture in pictures:
        for _ in range(rng.integers(1, 3)):
            middle, radius = rng.uniform(0, SIZE - 1, size=2), rng.uniform(1.2, 2.6)
            picture[np.hypot(x - middle[0], y - middle[1]) < radius] = 1
    return pictures, pictures + rng.normal(0, 0.7, pictures.shape)


def covariates(seen):
    """(pictures, pixels, 2): what is seen, and a constant."""
    flat = seen.reshape(len(seen), -1)
    return np.stack([flat, np.ones_like(flat)], axis=2)


def empty_grid():
    """Variables and edges whose potentials are to be learned."""
    pixel = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
    across = np.stack([pixel[:, :-1].ravel(), pixel[:, 1:].ravel()], axis=1)
    down = np.stack([pixel[:-1].ravel(), pixel[1:].ravel()], axis=1)
    edges = np.concatenate([across, down])
    return cz.Model.from_arrays(np.zeros((SIZE * SIZE, 2)), edges, np.zeros((len(edges), 2, 2)))


def draw(truth, seen, marginals, reports):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 3.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.25])
    axes = left.subplots(3, 4)
    for k in range(4):
        for row, image in enumerate((truth[k], seen[k], marginals[k])):
            axes[row, k].imshow(image, cmap="gray", vmin=-0.3, vmax=1.3, interpolation="nearest")
            axes[row, k].set(xticks=[], yticks=[])
    for row, words in enumerate(("held out", "seen", "P(white)")):
        axes[row, 0].set_ylabel(words, fontsize=9)
    ax = right.subplots()
    for place, (_, bracket) in enumerate(reports.values()):
        ends = [bracket.lower, bracket.upper]
        ax.plot(ends, [place, place], color="C0", linewidth=7, solid_capstyle="butt", alpha=0.4)
        ax.plot(ends, [place, place], "|", color="C0", markersize=15)
        words = " to ".join(dict.fromkeys(f"{end:.2f}" for end in ends))
        ax.annotate(words, (sum(ends) / 2, place), (0, 12), ha="center", fontsize=9, textcoords="offset points")
    ax.set_yticks(range(len(reports)), list(reports))
    ax.set(ylim=(len(reports) - 0.5, -0.6), xlabel="log-likelihood of a picture held out, in nats")
    ax.margins(x=0.35)
    ax.set_title("Certified brackets: the more to the right, the likelier", fontsize=9.5)
    return figure


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pictures", type=int, default=40, help="pictures to learn from (default 40)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(), help="the folder for the picture (default: this one)")
    options = parser.parse_args(arguments)
    try:
        import matplotlib  # noqa: F401 (before anything is computed)
    except ModuleNotFoundError as error:
        print(f"this example needs {error.name}: pip install {error.name}", file=sys.stderr)
        return 2

    rng = np.random.default_rng(options.seed)
    pictures, seen = blobs(rng, options.pictures + 20)
    rows, inputs = pictures.reshape(len(pictures), -1), covariates(seen)
    known, held_out = slice(options.pictures), slice(options.pictures, None)
    grid = empty_grid()
    tied, apart = (cz.tied_parameters(grid, variables="none", edges=edges) for edges in ("all", "none"))
    ways = [
        ("pixels alone", "exact", apart, "exact"),
        ("neighbours, exactly", "exact", tied, "exact"),
        ("neighbours, by TRW's bound", "trw", tied, "mini_buckets"),
    ]
    reports = {}
    for name, method, parameters, bracketed_by in ways:
        found = cz.fit(
            grid,
            rows[known],
            inputs=inputs[known],
            method=method,
            parameters=parameters,
            l2=1e-3,
            max_iter=40,
            tol=1e-3,
        )
        limits = cz.options.MiniBucketsOptions(max_table=2**3) if bracketed_by == "mini_buckets" else None
        bracket = found.evaluate(rows[held_out], inputs=inputs[held_out], method=bracketed_by, options=limits)
        reports[name] = found, bracket
        print(f"{name}: {found.log_likelihood:.2f} nats a picture where it learned,", end=" ")
        print(f"{bracket.lower:.2f} to {bracket.upper:.2f} on pictures held out")
    learned, _ = reports["neighbours, exactly"]
    estimates = cz.exact(learned.batch(inputs[held_out]))
    marginals = np.array([np.asarray(lane)[:, 1] for lane in estimates.marginals]).reshape(-1, SIZE, SIZE)
    wrong = [np.mean((image > 0.5) != pictures[held_out]) for image in (seen[held_out], marginals)]
    print(f"wrong pixels: {wrong[0]:.1%} as seen, {wrong[1]:.1%} cleaned")
    figure = draw(pictures[held_out], seen[held_out], marginals, reports)
    options.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out / "random_field.png", dpi=150)
    print(f"wrote {options.out / 'random_field.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
