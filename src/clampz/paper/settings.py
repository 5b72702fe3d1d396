"""How the methods are set: as the paper had them, or as we would.  Runs of different settings are never mixed."""

from dataclasses import asdict, dataclass
from typing import Any

from clampz.approximations.bethe import BetheOptions
from clampz.approximations.mean_field import MeanFieldOptions
from clampz.approximations.trw import TRWOptions
from clampz.clamping.selectors import selectors
from clampz.errors import unknown_name
from clampz.options import Options

PARTS = ("errors", "times", "optimal")
HEURISTICS = tuple(selectors())
# Clamps at most: of heuristics and pseudo-greedy, of greedy, and of optimal sequences.
MAX_CLAMPS, MAX_GREEDY, MAX_OPTIMAL = 5, 3, 3


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
    parts
        What there is to run with these settings.
    """

    name: str
    mf: MeanFieldOptions
    bethe: BetheOptions
    trw: TRWOptions
    warm_starts: bool
    reweight: bool
    heuristics: tuple[str, ...]
    parts: tuple[str, ...]

    def options(self, method: str, threads: int = 1) -> Options:
        """Of a method, by the name it is registered under."""
        chosen: Options = {"mean_field": self.mf, "bethe": self.bethe, "trw": self.trw}[method]
        return chosen.with_changes({"threads": threads})

    def described(self) -> dict[str, Any]:
        """For the record, as JSON has it; limits on time and threads, which change no number, are left out."""
        found = asdict(self)
        for method in ("mf", "bethe", "trw"):
            for limit in ("time", "threads"):
                del found[method][limit]
        return found | {"heuristics": list(self.heuristics), "parts": list(self.parts)}


# The paper's, in libDAI: MF[tol=1e-7,maxiter=10000,init=RANDOM], from the same random start in every branch;
# HAK[doubleloop=1,init=UNIFORM,tol=1e-7,maxiter=10000]; TRWBP[tol=1e-7,maxiter=10000,nrtrees=1000], with spanning trees
# drawn anew for the graph that is left. libDAI's tolerance is a change of beliefs.  Our TRW's is the certificate's
# slack in nats, how far the bound may be above its limit: a thousandth, where errors are of whole nats.  On strong
# complete graphs the slack falls like one over the number of sweeps, and a tenth of it takes ten times as long.
PAPER = Settings(
    name="paper",
    mf=MeanFieldOptions(tol=1e-7, max_iter=10_000, num_starts=1),
    bethe=BetheOptions(tol=1e-7, max_iter=10_000, num_starts=0, from_mean_field=False),
    trw=TRWOptions(tol=1e-3, max_iter=10_000),
    warm_starts=False,
    reweight=True,
    heuristics=HEURISTICS,
    parts=PARTS,
)
# Ours: several starts, those of the parents among them, and edge weights that make TRW's bound as low as they can.
OURS = Settings(
    name="ours",
    mf=MeanFieldOptions(),
    bethe=BetheOptions(),
    trw=TRWOptions(edge_weights="optimized"),
    warm_starts=True,
    reweight=True,
    heuristics=("maxW+TRE",),
    parts=("errors", "times"),
)
SETTINGS = {settings.name: settings for settings in (PAPER, OURS)}


def settings_named(name: str) -> Settings:
    """The settings of this name."""
    if name not in SETTINGS:
        raise unknown_name("settings", name, SETTINGS)
    return SETTINGS[name]
