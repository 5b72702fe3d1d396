"""The probability of evidence in a Bayesian network from pgmpy: how likely are these findings, and what follows from
them?

    python examples/bayesian_network.py --out pictures

The network is the chest clinic ("Asia") of Lauritzen and Spiegelhalter, 1988.  As a model its log Z is 0; given
evidence, it is the evidence's log probability.
"""

import argparse
import math
import sys
from pathlib import Path

import clampz as cz

EVIDENCE = {"x-ray": "abnormal", "shortness of breath": "yes", "visit to Asia": "yes"}
DISEASES = ["tuberculosis", "lung cancer", "bronchitis"]
YES_NO = ["yes", "no"]


def chest_clinic():
    """Each variable with its parents and, for each of their joint states, the probability of its first state."""
    from pgmpy import models
    from pgmpy.factors.discrete import TabularCPD

    tables = {
        "visit to Asia": ([], [0.01]),
        "smoking": ([], [0.5]),
        "tuberculosis": (["visit to Asia"], [0.05, 0.01]),
        "lung cancer": (["smoking"], [0.1, 0.01]),
        "bronchitis": (["smoking"], [0.6, 0.3]),
        "either": (["tuberculosis", "lung cancer"], [1.0, 1.0, 1.0, 0.0]),
        "x-ray": (["either"], [0.98, 0.05]),
        "shortness of breath": (["either", "bronchitis"], [0.9, 0.7, 0.8, 0.1]),
    }
    states = dict.fromkeys(tables, YES_NO) | {"x-ray": ["abnormal", "normal"]}
    network_class = getattr(models, "DiscreteBayesianNetwork", None) or models.BayesianNetwork
    network = network_class([(parent, name) for name, (parents, _) in tables.items() for parent in parents])
    for name, (parents, first) in tables.items():
        values = [first, [1 - p for p in first]]
        network.add_cpds(
            TabularCPD(
                name,
                2,
                values,
                parents or None,
                [2] * len(parents) or None,
                state_names={v: states[v] for v in [name, *parents]},
            )
        )
    return network


def draw(before, after):
    """How much each probability changes with the evidence."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 2.1), layout="constrained")
    ax = figure.subplots()
    for row, name in enumerate(DISEASES):
        ax.annotate(
            "",
            (after[name], row),
            (before[name], row),
            arrowprops={"arrowstyle": "-|>", "color": "#6b7684", "shrinkA": 4, "shrinkB": 4},
        )
        ax.plot(
            before[name],
            row,
            "o",
            markerfacecolor="white",
            markeredgecolor="#1f2a37",
            label="before" if not row else None,
        )
        ax.plot(after[name], row, "o", color="#1f2a37", label="given the findings" if not row else None)
        ax.annotate(
            f"{after[name]:.0%}",
            (after[name], row),
            (9 if after[name] > before[name] else -9, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    ax.set(
        xlim=(0, 1),
        ylim=(len(DISEASES) - 0.5, -0.5),
        yticks=range(len(DISEASES)),
        yticklabels=DISEASES,
        xlabel="probability",
    )
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(left=False)
    ax.legend(frameon=False, fontsize=9, loc="upper right")
    return figure


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(), help="the folder for the picture (default: this one)")
    options = parser.parse_args(arguments)
    try:
        network = chest_clinic()
        import matplotlib  # noqa: F401 (before anything is computed)
    except ModuleNotFoundError as error:
        print(f"this example needs {error.name}: pip install {error.name}", file=sys.stderr)
        return 2

    prior = cz.exact(cz.from_pgmpy(network))
    posterior = cz.exact(cz.from_pgmpy(network, evidence=EVIDENCE))
    bounds = [cz.clamp(cz.from_pgmpy(network, evidence=EVIDENCE), method, k=1) for method in ("mf", "trw")]
    print(f"p({', '.join(f'{name} = {state}' for name, state in EVIDENCE.items())})")
    lower, upper = math.exp(bounds[0].lower), math.exp(bounds[1].upper)
    print(f"  = {math.exp(posterior.log_z):.6g} exactly, and with one clamp between {lower:.6g} and {upper:.6g}")
    before, after = ({name: float(estimate.marginal(name)[0]) for name in DISEASES} for estimate in (prior, posterior))
    for name in DISEASES:
        print(f"{name:14} {before[name]:7.2%} before, {after[name]:7.2%} given the findings")
    options.out.mkdir(parents=True, exist_ok=True)
    draw(before, after).savefig(options.out / "bayesian_network.png", dpi=150)
    print(f"wrote {options.out / 'bayesian_network.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
