"""Pictures of models and of results; each result draws its own by `plot`.

Matplotlib (`pip install 'clampz[cli]'`) is imported when something is drawn.  Attractive edges are
solid and blue, repulsive ones dashed and red, as in the paper.  Nothing is said by colour alone, so the pictures also
read in greyscale.  Every function draws on the axes `ax`, or on a new figure, and returns the axes:
`plot_model(model).figure.savefig("model.png")`.
"""

from clampz.bounding.bracket import Bracket
from clampz.clamping.branches import Clamped
from clampz.display.plot_hooks import draws
from clampz.map_inference.results import Mode
from clampz.plotting.bracket_trace import plot_bracket_trace
from clampz.plotting.clamping_trace import plot_clamped
from clampz.plotting.graph_elements import FADED
from clampz.plotting.graph_layout import Layout, layout
from clampz.plotting.graphs import plot_model
from clampz.plotting.method_comparison import plot_estimates
from clampz.plotting.modes import plot_mode
from clampz.plotting.samples import plot_samples
from clampz.plotting.solutions import plot_solution
from clampz.plotting.style import ATTRACTIVE, DASHES, FAINT, INK, PALE, REPULSIVE, SOFT
from clampz.plotting.summary import plot_marginals, plot_summary
from clampz.plotting.sweeps import plot_sweep
from clampz.runtime.options import knows_its_options
from clampz.sampling.samples import Samples
from clampz.solving.solution import Solution
from clampz.temperature_sweep.result import Sweep

__all__ = [
    "ATTRACTIVE",
    "DASHES",
    "FADED",
    "FAINT",
    "INK",
    "PALE",
    "REPULSIVE",
    "SOFT",
    "Layout",
    "layout",
    "plot_bracket_trace",
    "plot_clamped",
    "plot_estimates",
    "plot_marginals",
    "plot_mode",
    "plot_model",
    "plot_samples",
    "plot_solution",
    "plot_summary",
    "plot_sweep",
]

for kind, plot in (
    (Clamped, plot_clamped),
    (Bracket, plot_bracket_trace),
    (Mode, plot_mode),
    (Samples, plot_samples),
    (Solution, plot_solution),
    (Sweep, plot_sweep),
):
    draws(kind, knows_its_options(plot))
