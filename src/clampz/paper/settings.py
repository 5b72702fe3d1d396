"""How the methods are set: as the paper had them, or as we would.  Runs of different settings are never mixed."""

from dataclasses import asdict, dataclass
from typing import Any

import clampz as cz
from clampz.errors import unknown_name
from clampz.options import Options
from clampz.wording import TITLES as LONG_TITLES

EXPERIMENTS = ("errors", "times", "optimal")
HEURISTICS = tuple(cz.selectors())
# The methods as rows, tables and figures call them.
TITLES = {"mf": "MF", "bethe": LONG_TITLES["bethe"], "trw": LONG_TITLES["trw"]}
METHODS = tuple(TITLES)
# Clamps at most: of heuristics and pseudo-greedy, of greedy, and of optimal sequences.
MAX_CLAMPS, MAX_GREEDY, MAX_OPTIMAL = 5, 3, 3
# Variables of a model at most, where every set of them is tried.
MAX_OPTIMAL_SIZE = 25


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options of the three methods, and how clamping uses them.

    Attributes
    ----------
    warm_starts
        Whether a branch starts at its parent's solution as well.
    reweight
        What becomes of TRW's edge weights after a clamp.  With warm starts: the better of the parent's, restricted, and
        new ones.  Without: always new ones.
    heuristics
        The selectors that are run from the start.
    experiments
        What there is to run with these settings.
    """

    name: str
    mf: cz.MeanFieldOptions
    bethe: cz.BetheOptions
    trw: cz.TRWOptions
    warm_starts: bool
    reweight: bool
    heuristics: tuple[str, ...]
    experiments: tuple[str, ...]

    def options(self, method: str, threads: int = 1) -> Options:
        """Of a method."""
        chosen: Options = {"mf": self.mf, "bethe": self.bethe, "trw": self.trw}[method]
        return chosen.with_changes({"threads": threads})

    def described(self) -> dict[str, Any]:
        """For the record, as JSON has it; limits on time, threads and memory, which change no number, are left out.

        Files call the experiments "parts".
        """
        found = asdict(self)
        for method in METHODS:
            for limit in ("time", "threads", "memory"):
                del found[method][limit]
        return found | {"heuristics": list(self.heuristics), "parts": list(found.pop("experiments"))}


# The paper's, in libDAI: MF[tol=1e-7,maxiter=10000,init=RANDOM], from the same random start in every branch;
# HAK[doubleloop=1,init=UNIFORM,tol=1e-7,maxiter=10000]; TRWBP[tol=1e-7,maxiter=10000,nrtrees=1000], with spanning trees
# drawn anew for the graph that is left. libDAI's tolerance is a change of beliefs.  Our TRW's is the certificate's
# slack in nats, how far the bound may be above its limit: a thousandth, where errors are of whole nats.  On strong
# complete graphs the slack falls like one over the number of sweeps, and a tenth of it takes ten times as long.
PAPER = Settings(
    name="paper",
    mf=cz.MeanFieldOptions(tol=1e-7, max_iter=10_000, num_starts=1),
    bethe=cz.BetheOptions(tol=1e-7, max_iter=10_000, num_starts=0, from_mean_field=False),
    trw=cz.TRWOptions(tol=1e-3, max_iter=10_000),
    warm_starts=False,
    reweight=True,
    heuristics=HEURISTICS,
    experiments=EXPERIMENTS,
)
# Ours: several starts, those of the parents among them, and edge weights that make TRW's bound as low as they can.
OURS = Settings(
    name="ours",
    mf=cz.MeanFieldOptions(),
    bethe=cz.BetheOptions(),
    trw=cz.TRWOptions(edge_weights="optimized"),
    warm_starts=True,
    reweight=True,
    heuristics=("maxW+TRE",),
    experiments=("errors", "times"),
)
SETTINGS = {settings.name: settings for settings in (PAPER, OURS)}


def settings_named(name: str) -> Settings:
    """The settings of this name."""
    if name not in SETTINGS:
        raise unknown_name("settings", name, SETTINGS)
    return SETTINGS[name]
