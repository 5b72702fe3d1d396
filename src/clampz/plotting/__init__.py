"""Pictures of models and of what methods found; results have theirs under `plot`.

They need matplotlib (`pip install 'clampz[cli]'`), which is imported when something is drawn.  Attractive edges are
solid and blue, repulsive ones dashed and red, as in the paper; nothing is said by colour alone, so the pictures also
read in greyscale.  Every function draws on the axes it is given, `ax`, or on a figure of its own, and returns the axes:
`plot_model(model).figure.savefig("model.png")`.

May import: everything but the command line, reports and the paper; pyplot where somebody works with it (`canvas`).
"""

from clampz.bounding.bracket import Bracket
from clampz.clamping.branches import Clamped
from clampz.display.plot_hooks import draws
from clampz.map_inference.results import Mode
from clampz.plotting.bracket_trace import plot_closing
from clampz.plotting.brackets import plot_bracket
from clampz.plotting.clamping_trace import plot_clamped
from clampz.plotting.graphs import plot_model
from clampz.plotting.modes import plot_mode
from clampz.plotting.nodes import FADED
from clampz.plotting.positions import Layout, layout
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
    "plot_bracket",
    "plot_clamped",
    "plot_closing",
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
    (Bracket, plot_closing),
    (Mode, plot_mode),
    (Samples, plot_samples),
    (Solution, plot_solution),
    (Sweep, plot_sweep),
):
    draws(kind, knows_its_options(plot))
