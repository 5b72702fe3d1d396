"""The picture of what `solve` found."""

from typing import TYPE_CHECKING

from clampz.clamping.branches import Clamped
from clampz.plotting.bracket_trace import VALUE_SIZE, exact_value, plot_closing, write_value
from clampz.plotting.brackets import plot_bracket
from clampz.plotting.canvas import new_axes
from clampz.plotting.clamping_trace import plot_clamped
from clampz.solving.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_solution(solution: Solution, ax: "Axes | None" = None) -> "Axes":
    """Draw how it was found: the bracket over time, or log Z against the number of clamps; what was exact at once is a
    number, and of one method alone what it says."""
    if solution.bracket is not None:
        return plot_closing(solution.bracket, ax)
    if isinstance(solution.estimate, Clamped):
        return plot_clamped(solution.estimate, ax=ax)
    if solution.bound == "exact":
        value = f"log Z = {exact_value(solution.lower, solution.upper)}"
        return write_value(new_axes(ax, VALUE_SIZE), value, f"exact, but for rounding, after {solution.seconds:.2g} s")
    return plot_bracket([solution.estimate], ax=ax)
