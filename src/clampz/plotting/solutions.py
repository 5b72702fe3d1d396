"""The picture of a solution of `solve`."""

from typing import TYPE_CHECKING

from clampz.clamping.branches import Clamped
from clampz.plotting.bracket_trace import VALUE_SIZE, exact_value, plot_bracket_trace, write_value
from clampz.plotting.clamping_trace import plot_clamped
from clampz.plotting.figures import new_axes
from clampz.plotting.method_comparison import plot_estimates
from clampz.solving.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_solution(solution: Solution, ax: "Axes | None" = None) -> "Axes":
    """Draw how log Z was found: the bracket over time, or the estimate against the number of clamps.

    An exact value is written as a number; the estimate of a single method is drawn as `plot_estimates` does.
    """
    if solution.bracket is not None:
        return plot_bracket_trace(solution.bracket, ax)
    if isinstance(solution.estimate, Clamped):
        return plot_clamped(solution.estimate, ax=ax)
    if solution.bound == "exact":
        value = f"log Z = {exact_value(solution.lower, solution.upper)}"
        return write_value(new_axes(ax, VALUE_SIZE), value, f"exact, but for rounding, after {solution.seconds:.2g} s")
    return plot_estimates([solution.estimate], ax=ax)
