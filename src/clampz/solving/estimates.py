"""Which of the methods the estimate between two bounds is from, where there is none that is exact."""

import math
from typing import TypeVar

from clampz.approximations.bethe import bethe
from clampz.approximations.method_choice import BETHE_TOL, SETTLED
from clampz.clamping.branches import Clamped
from clampz.display.formatting import title
from clampz.model.results import Estimate
from clampz.solving.run import Run
from clampz.solving.solution import Found

EndT = TypeVar("EndT", bound=Found)


def gone_on(first: Estimate | None, run: Run) -> Estimate | None:
    """Return Bethe's result, run further where it has not converged and there is time."""
    if first is None or is_settled(first) or not run.budget.left():
        return first
    return run.by_if_it_fits(bethe, first.model, start=first, tol=BETHE_TOL, num_starts=0, from_mean_field=False)


def estimate_from(
    upper: float, below: EndT, above: EndT | None, first: Estimate | None, strong: bool
) -> tuple[EndT | Estimate, str]:
    """Return the result that the estimate is from, and why; TRW's is given whenever it could be that."""
    if upper == -math.inf:
        return above or below, "that proves that Z = 0"
    if first is not None and is_settled(first):
        return first, "Bethe is the estimate between, as a rule the nearest"
    also = "bound is also the estimate, as"
    if strong:
        return below, f"the lower {also} the model is dense, mixed and strong, where Bethe is far off"
    unfit = first is not None and first.stopped_by == "memory"
    no_bethe = "there was not memory enough for Bethe" if unfit else "Bethe did not converge in time"
    if below.lower > -math.inf or above is None:
        return below, f"the lower {also} {no_bethe}"
    return above, f"the upper {also} {no_bethe} and mean field found no possible configuration"


def unless_outside(found: Found, choice: str, lower: float, upper: float) -> str:
    """Return the words on the choice, or others for a Bethe value outside the bracket."""
    if found.method != "bethe" or lower <= found.log_z <= upper:
        return choice
    return f"Bethe says {found.log_z:.6g}, outside the bracket, and the bound next to that is given"


def named(method: str) -> str:
    """Return the name of a method as a sentence begins with it."""
    return title(method)[0].upper() + title(method)[1:]


def is_settled(found: Found) -> bool:
    """Whether a Bethe value counts, having converged if not to all digits."""
    return bool(found.branches.residual.max() <= SETTLED) if isinstance(found, Clamped) else found.residual <= SETTLED
