"""The 44 reference models, against libDAI's log Z of the same models (MF, HAK, TRWBP with sampled trees, JTREE) as
recorded in tests/data/reference.

    python benchmarks/reference.py [--quick]

Errors are means in nats per weight range.  Smaller is better throughout: TRW's and Bethe's distance from exact, mean
field's fall short of it.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import clampz as cz
from timing import Claim, alone, print_table

DATA = Path(__file__).parent.parent / "tests" / "data" / "reference"
RANGES = ("W0_2", "W0_6", "Wm6_6", "Wm12_12")
QUICK = ("K10", "er25", "grid49")
METHODS: dict[str, Callable[[cz.Model], cz.Estimate]] = {
    "exact": cz.exact,
    "mean_field": cz.mean_field,
    "bethe": cz.bethe,
    "trw uniform": cz.trw,
    "trw optimized": lambda model: cz.trw(model, edge_weights="optimized"),
}
# Mean-field bounds this close count as equally tight: libDAI's values are recorded to ten digits, ours are lowered by
# the rounding error.
TIE = 1e-6


def main(quick: bool) -> list[Claim]:
    libdai = json.loads((DATA / "libdai.json").read_text())
    names = [name for name in sorted(libdai) if not quick or name.startswith(QUICK)]
    models = {name: cz.read(DATA / f"{name}.uai") for name in names}
    found: dict[str, dict[str, cz.Estimate]] = {}
    seconds: dict[str, float] = {}
    for method, solve in METHODS.items():
        solve(models[names[0]])  # loads the kernels
        began = time.perf_counter()
        found[method] = {name: solve(model) for name, model in models.items()}
        seconds[method] = time.perf_counter() - began

    theirs = {key: np.array([libdai[name][key] for name in names]) for key in ("MF", "HAK", "TRWBP", "JTREE")}
    ours = {method: np.array([estimate.log_z for estimate in found[method].values()]) for method in METHODS}
    exact, field, bethe = ours["exact"], ours["mean_field"], ours["bethe"]
    uniform, optimized = ours["trw uniform"], ours["trw optimized"]

    def mean_by_range(values: np.ndarray[Any, Any]) -> list[float]:
        return [
            float(np.mean([v for v, name in zip(values, names, strict=True) if f"_{chosen}_" in name]))
            for chosen in RANGES
        ] + [float(np.mean(values))]

    header = ["", *(chosen.replace("_", ",").replace("W", "[").replace("m", "-") + "]" for chosen in RANGES), "all"]
    errors = {
        "trw uniform - exact": uniform - exact, "trw optimized - exact": optimized - exact,
        "libDAI TRWBP - exact": theirs["TRWBP"] - exact,
        "exact - mean field": exact - field, "exact - libDAI MF": exact - theirs["MF"],
        "|bethe - exact|": abs(bethe - exact), "|libDAI HAK - exact|": abs(theirs["HAK"] - exact),
        "bethe - HAK": bethe - theirs["HAK"],
    }  # fmt: skip
    print_table(
        f"Mean error on {len(names)} reference models, nats",
        header,
        [[what, *mean_by_range(values)] for what, values in errors.items()],
    )

    open_ends = {
        method: [name for name, estimate in found[method].items() if not estimate.converged] for method in METHODS
    }
    print_table(
        "Our runs, default options",
        ["method", "seconds", "converged", "median sweeps", "most sweeps"],
        [
            [
                method,
                seconds[method],
                f"{len(names) - len(open_ends[method])} of {len(names)}",
                *_sweeps(list(found[method].values())),
            ]
            for method in METHODS
        ],
    )  # fmt: skip
    for method, left in open_ends.items():
        for name in left:
            estimate = found[method][name]
            how = f"residual {estimate.residual:.3g} after {estimate.num_iter} sweeps, stopped by {estimate.stopped_by}"
            print(f"  {method} not converged on {name}: {how}")
    _sandwich(names, exact, field, bethe, uniform, optimized)
    worst = int(np.argmin(bethe - theirs["HAK"]))
    least, furthest = bethe[worst] - theirs["HAK"][worst], abs(exact - theirs["JTREE"]).max()
    print(f"  bethe - HAK is least on {names[worst]}: {least:.3g}; exact against JTREE: {furthest:.2g}")
    share = len(names)
    return [
        Claim(
            "reference: error of trw uniform / TRWBP's",
            float((uniform - exact).sum() / (theirs["TRWBP"] - exact).sum()),
            "<=",
            1.01,
        ),
        Claim(
            "reference: error of trw optimized / trw uniform's",
            float((optimized - exact).sum() / (uniform - exact).sum()),
            "<=",
            1.0,
        ),
        Claim(
            "reference: mean field at least as tight as libDAI's, share of models",
            float((field >= theirs["MF"] - TIE).sum() / share),
            ">=",
            43 / 44,
        ),
        Claim(
            "reference: shortfall of mean field / libDAI's",
            float((exact - field).sum() / (exact - theirs["MF"]).sum()),
            "<=",
            1.0,
        ),
        Claim("reference: bethe at least HAK, share of models", float((bethe >= theirs["HAK"] - TIE).sum() / share)),
        Claim("reference: bethe converged, share of models", 1 - len(open_ends["bethe"]) / share, ">=", 1.0),
        Claim("reference: trw uniform converged, share of models", 1 - len(open_ends["trw uniform"]) / share),
        Claim(
            "reference: largest difference of exact from JTREE, nats",
            float(abs(exact - theirs["JTREE"]).max()),
            "<=",
            1e-6,
        ),
    ]


def _sweeps(estimates: list[cz.Estimate]) -> tuple[float, int]:
    counts = [estimate.num_iter for estimate in estimates]
    return float(np.median(counts)), max(counts)


def _sandwich(names: list[str], exact: Any, field: Any, bethe: Any, uniform: Any, optimized: Any) -> None:
    """mean field <= exact <= TRW must hold; mean field <= Bethe <= TRW holds at the optima."""
    upper = np.minimum(uniform, optimized)
    for what, low, high in [
        ("mean field <= exact", field, exact),
        ("exact <= trw uniform", exact, uniform),
        ("exact <= trw optimized", exact, optimized),
        ("mean field <= bethe", field, bethe),
        ("bethe <= trw", bethe, upper),
    ]:
        broken = [f"{name} ({d:.3g})" for name, d in zip(names, low - high, strict=True) if d > TIE]
        print(f"  {what}: {len(names) - len(broken)} of {len(names)}{': not ' + ', '.join(broken) if broken else ''}")


if __name__ == "__main__":
    alone(main)
