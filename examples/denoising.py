"""Image denoising: clean a small noisy picture, and show where the result is not to be trusted.

    python examples/denoising.py --noise 0.8 --out pictures

Each pixel is a variable with one state per grey level.  Its unary potentials say how well a level explains what was
seen, its edges that neighbours tend to be of similar levels.  The cleaned picture has every pixel's likeliest level;
the entropy of the pixel's marginal says how sure that is.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import clampz as cz

LEVELS = 5


def landscape(size=64):
    """A picture of five grey levels: a low sun over two ranges of hills, a lake and a tree."""
    y, x = np.mgrid[0:size, 0:size] / (size - 1)
    picture = np.full((size, size), 3)
    picture[np.hypot(x - 0.66, y - 0.2) < 0.13] = 4
    picture[y > 0.46 + 0.09 * np.sin(7 * x + 0.5) + 0.04 * np.sin(17 * x)] = 1
    picture[y > 0.66 + 0.09 * np.sin(4 * x + 3.6)] = 2
    picture[(((x - 0.62) / 0.26) ** 2 + ((y - 0.86) / 0.07) ** 2) < 1] = 4
    picture[(abs(x - 0.2) < 0.035) & (y > 0.5) & (y < 0.86)] = 0
    picture[
        (np.hypot(x - 0.2, (y - 0.42) * 0.85) < 0.13)
        | (np.hypot(x - 0.13, y - 0.52) < 0.09)
        | (np.hypot(x - 0.28, y - 0.51) < 0.08)
    ] = 0
    return picture


def denoising_model(seen, noise, smoothness, most):
    """Gaussian noise; neighbours cost `smoothness` per level they differ by, but never more than `most`: edges of
    things stay sharp."""
    height, width = seen.shape
    levels = np.arange(LEVELS)
    unary = -((seen.reshape(-1, 1) - levels) ** 2) / (2 * noise**2)
    pixel = np.arange(height * width).reshape(height, width)
    across = np.stack([pixel[:, :-1].ravel(), pixel[:, 1:].ravel()], axis=1)
    down = np.stack([pixel[:-1].ravel(), pixel[1:].ravel()], axis=1)
    edges = np.concatenate([across, down])
    table = -np.minimum(smoothness * abs(levels[:, None] - levels), most)
    return cz.Model.from_arrays(unary, edges, np.broadcast_to(table, (len(edges), LEVELS, LEVELS)))


def draw(truth, seen, cleaned, entropy):
    from matplotlib.figure import Figure

    wrong_before, wrong_after = (np.mean(np.clip(np.rint(p), 0, LEVELS - 1) != truth) for p in (seen, cleaned))
    figure = Figure(figsize=(10.4, 2.95), layout="constrained")
    axes = figure.subplots(1, 4)
    grey = {"cmap": "gray", "vmin": -0.4, "vmax": LEVELS - 0.6, "interpolation": "nearest"}
    axes[0].imshow(truth, **grey)
    axes[1].imshow(seen, **grey)
    axes[2].imshow(cleaned, **grey)
    shade = axes[3].imshow(entropy, cmap="magma_r", vmin=0, interpolation="nearest")
    titles = [
        "The picture",
        f"Seen: {wrong_before:.0%} of the pixels\nnearest to a wrong level",
        f"Cleaned: {wrong_after:.1%} wrong",
        "Uncertainty: entropy\nof each marginal, in bits",
    ]
    for ax, title in zip(axes, titles, strict=True):
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, fontsize=9.5)
    figure.colorbar(shade, cax=axes[3].inset_axes((1.04, 0, 0.05, 1)))
    return figure


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--noise", type=float, default=0.8, help="standard deviation of the noise, in grey levels (default 0.8)"
    )
    parser.add_argument(
        "--smoothness", type=float, default=1.4, help="cost of one level between neighbours, in nats (default 1.4)"
    )
    parser.add_argument("--most", type=float, default=1.8, help="cost of any number of levels, at most (default 1.8)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(), help="the folder for the picture (default: this one)")
    options = parser.parse_args(arguments)
    try:
        import matplotlib  # noqa: F401 (before anything is computed)
    except ModuleNotFoundError as error:
        print(f"this example needs {error.name}: pip install {error.name}", file=sys.stderr)
        return 2

    truth = landscape()
    seen = truth + np.random.default_rng(options.seed).normal(0, options.noise, truth.shape)
    model = denoising_model(seen, options.noise, options.smoothness, options.most)
    print(model)
    estimate = cz.bethe(model, tol=1e-2)
    print(estimate)
    marginals = np.asarray(estimate.marginals)
    cleaned = marginals.argmax(axis=1).reshape(truth.shape)
    entropy = -(marginals * np.log2(np.maximum(marginals, 1e-300))).sum(axis=1).reshape(truth.shape)
    wrong = cleaned != truth
    unsure = entropy > np.quantile(entropy, 0.8)
    share = f"{unsure[wrong].mean():.0%} are among the fifth with the most uncertain marginals"
    print(f"wrong pixels: {wrong.mean():.1%}; of these, {share}")
    figure = draw(truth, seen, cleaned, entropy)
    options.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out / "denoising.png", dpi=150)
    print(f"wrote {options.out / 'denoising.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
