"""How the methods are set: as the paper had them, or as we would.  Runs of different settings are never mixed."""

from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import clampz as cz
from reproduction.tools import unknown_name

# Of each experiment, the runs that are made of the paper's families, of those of more labels, and with our settings.
EXPERIMENTS = {"errors": 100, "times": 40, "optimal": 10, "further": 25}
LABELLED_RUNS, OWN_RUNS = {"errors": 25}, {"errors": 15, "times": 3}
HEURISTICS = tuple(cz.selectors())
# The methods as rows, tables and figures call them.
TITLES = {"mf": "MF", "bethe": "Bethe", "trw": "TRW"}
METHODS = tuple(TITLES)
# The bounds of mini-buckets that stand beside the further clamps, and what chooses them, as files call both.
MINI_BUCKETS, BY_LIMIT = "regions", "limit"
# What is timed: the plain heuristics take about the same time, and so do those with entropies.
TIMED = ("greedy", "pseudo-greedy", "maxW0", "maxW", "Mpower", "maxW+TRE", "strongCycles+TRE")
# What clamps where one selector stands for all: the paper's choice.
SELECTOR = "maxW+TRE"
# Clamps at most: of heuristics and pseudo-greedy, of greedy, of optimal sequences, and where it is seen how far they
# pay.
MAX_CLAMPS, MAX_GREEDY, MAX_OPTIMAL, MAX_FURTHER = 5, 3, 3, 10
# Branches at most, of variables of more labels than two.
MAX_BRANCHES = 512
# Variables of a model at most, where every set of them is tried.
MAX_OPTIMAL_SIZE = 25
# The families of the further clamps, one sparse and one dense, and of our own settings.
FURTHER_FAMILIES = ("grid81[-6,6]", "complete15[-6,6]")
OWN_FAMILIES = (
    *(f"{graph}{weights}" for graph in ("grid49", "complete10") for weights in ("[0,6]", "[-6,6]", "[-12,12]")),
    "grid81[0,6]",
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Hold the options of the three methods, and how clamping uses them.

    Attributes
    ----------
    title
        What reports and figures call it.
    warm_starts
        Whether a branch starts at its parent's solution as well.
    reweight
        What becomes of TRW's edge weights after a clamp.  With warm starts: the better of the parent's, restricted, and
        new ones, or the parent's alone.  Without: always new ones.
    per_branch
        Whether every branch chooses its own next variable.
    methods, selectors
        That are run from the start, and up to how many clamps: first what tries most, which solves many sets at once
        for the others to find.
    experiments, families
        What there is to run with these settings, and of which families: all if none are named.
    """

    name: str
    title: str
    mf: cz.options.MeanFieldOptions
    bethe: cz.options.BetheOptions
    trw: cz.options.TRWOptions
    warm_starts: bool = False
    reweight: bool = True
    per_branch: bool = False
    methods: tuple[str, ...] = METHODS
    selectors: dict[str, int]
    experiments: tuple[str, ...]
    families: tuple[str, ...] = ()

    def options(self, method: str, threads: int = 1) -> cz.options.Options:
        """Return the options of a method."""
        chosen: cz.options.Options = {"mf": self.mf, "bethe": self.bethe, "trw": self.trw}[method]
        return replace(chosen, threads=threads)

    def for_model(self, seed: int, clamps: int) -> "Settings":
        """Return these settings with random starts of a model's own, the same in all its branches, and a limit on
        clamps."""
        selectors = {name: min(most, clamps) if most < MAX_CLAMPS else clamps for name, most in self.selectors.items()}
        return replace(self, mf=replace(self.mf, seed=seed), bethe=replace(self.bethe, seed=seed), selectors=selectors)

    def described(self, clamps: int = MAX_CLAMPS) -> dict[str, Any]:
        """Describe the settings for the record, as JSON has it, but for limits on time, threads and memory, which
        change no number.

        Files call the experiments "parts".
        """
        found = asdict(self.for_model(0, clamps))
        for method in METHODS:
            for limit in ("time", "threads", "memory"):
                del found[method][limit]
            if "seed" in found[method]:
                found[method]["seed"] = "of the model"
        for name in ("title", "families", "experiments"):
            del found[name]
        return found | {"methods": list(self.methods), "parts": list(self.experiments), "timed": list(TIMED)}


# The paper's, in libDAI: MF[tol=1e-7,maxiter=10000,init=RANDOM], from the same random start in every branch;
# HAK[doubleloop=1,init=UNIFORM,tol=1e-7,maxiter=10000]; TRWBP[tol=1e-7,maxiter=10000,nrtrees=1000], with spanning trees
# drawn anew for the graph that is left. libDAI's tolerance is a change of beliefs.  Our TRW's is the certificate's
# slack in nats, how far the bound may be above its limit: a thousandth, where errors are of whole nats.  On strong
# complete graphs the slack falls like one over the number of sweeps, and a tenth of it takes ten times as long.
PAPER = Settings(
    name="paper",
    title="the paper’s settings",
    mf=cz.options.MeanFieldOptions(tol=1e-7, max_iter=10_000, num_starts=1),
    bethe=cz.options.BetheOptions(tol=1e-7, max_iter=10_000, num_starts=0, from_mean_field=False),
    trw=cz.options.TRWOptions(tol=1e-3, max_iter=10_000),
    selectors={
        "greedy": MAX_GREEDY,
        **dict.fromkeys(("pseudo-greedy", "pseudo-greedy (mf)", "pseudo-greedy (gap)", *HEURISTICS), MAX_CLAMPS),
    },
    experiments=tuple(EXPERIMENTS),
)
# Ours, each of what the library does differently by itself, and then all at once.
_HEURISTIC = {SELECTOR: MAX_CLAMPS}
_BASKET = {"pseudo-greedy": MAX_CLAMPS, **_HEURISTIC}
_RESTARTS = {"greedy": MAX_GREEDY, **_BASKET}
_OPTIMIZED = cz.options.TRWOptions(edge_weights="optimized", num_steps=10)


def _own(name: str, title: str, selectors: dict[str, int], **changes: Any) -> Settings:
    common = {"name": name, "title": title, "selectors": selectors, "families": OWN_FAMILIES}
    return replace(PAPER, experiments=tuple(OWN_RUNS), **cast(Any, common | changes))


OWN = (
    _own(
        "restarts",
        "restarts",
        _RESTARTS,
        mf=replace(PAPER.mf, num_starts=16),
        bethe=replace(PAPER.bethe, num_starts=2, from_mean_field=True),
        methods=("mf", "bethe"),
    ),
    _own("parents", "starts at the parent", _BASKET, warm_starts=True, reweight=False),
    _own("weights", "optimized edge weights", _HEURISTIC, trw=_OPTIMIZED, warm_starts=True, methods=("trw",)),
    _own("branches", "a choice per branch", _HEURISTIC, per_branch=True),
    _own(
        "ours",
        "all of ours",
        _BASKET,
        mf=cz.options.MeanFieldOptions(),
        bethe=cz.options.BetheOptions(),
        trw=_OPTIMIZED,
        warm_starts=True,
    ),
)
SETTINGS = {settings.name: settings for settings in (PAPER, *OWN)}


def settings_named(name: str) -> Settings:
    """Return the settings of this name."""
    if name not in SETTINGS:
        raise unknown_name("settings", name, SETTINGS)
    return SETTINGS[name]
