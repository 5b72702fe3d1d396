"""`clampz demo`: every method on a model that comes with clampz, as a table and a picture."""

import argparse
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import clampz
from clampz._kernels.jit import COMPILES
from clampz.cli import arguments
from clampz.cli.exit_codes import OK, require
from clampz.cli.outputs import PICTURE_SUFFIXES, check_file, save_picture
from clampz.cli.tables import new_table, show
from clampz.display.formatting import KINDS, round_outward
from clampz.model import Model
from clampz.model.results import Estimate
from clampz.runtime.budget import end_at_once, on_ctrl_c

if TYPE_CHECKING:
    from rich.table import Table

SUMMARY = "bracket log Z of a frustrated spin glass with every method, and draw it"
DESCRIPTION = """Run exact, mean field, Bethe and TRW on a 7 x 7 spin glass that comes with clampz, print what they
say of log Z, and write a picture."""
EXAMPLES = """\
  clampz demo
  clampz demo --out demo.pdf"""

# Made by `clampz.write(clampz.generators.grid(7, 7, toroidal=False, rng=0), "spin_glass_7x7.uai")`: a spin glass at the
# paper's strengths, theta in [-2, 2] and W in [-6, 6], small enough to be solved exactly.
# tests/cli/commands/test_demo.py makes it again and compares.
DEMO_MODEL = "spin_glass_7x7.uai"


class TimedRun(NamedTuple):
    """The estimate of one method, and how long it took."""

    label: str
    estimate: Estimate
    milliseconds: float


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    text = "the picture: .png, .svg or .pdf (default: %(default)s)"
    arguments.add_out(parser, text, default=Path("clampz-demo.png"))


def run(args: argparse.Namespace) -> int:
    """Run every method on the bundled model, print a table, and write a picture."""
    check_file(args.out, suffixes=PICTURE_SUFFIXES)
    require("rich", "matplotlib")
    from rich.console import Console

    from clampz import plotting

    messages = Console(stderr=True)
    with on_ctrl_c(end_at_once), messages.status("reading the model") as status:
        model = demo_model()
        runs = run_methods(model, status.update)
        exact, others = runs[0], {run.label: run.estimate for run in runs[1:]}
        status.update("drawing")
        figure = plotting.plot_summary(model, exact.estimate, others)
        save_picture(figure, args.out)
    out = Console(highlight=False, soft_wrap=True)
    out.print(f"A 7 x 7 spin glass: {model!r}\n")
    show(table_of(runs))
    lower, upper = max(run.estimate.lower for run in runs[1:]), min(run.estimate.upper for run in runs[1:])
    bethe = next(run.estimate for run in runs if run.estimate.method == "bethe")
    low, high = round_outward(lower, "lower", 4), round_outward(upper, "upper", 4)
    out.print(f"[bold]{low} <= log Z <= {high}[/bold], proven by mean field (below) and TRW (above).")
    out.print(f"Bethe is nearer, off by {bethe.log_z - exact.estimate.log_z:+.4f}, but proves nothing.")
    out.print("\nPicture: ", args.out, sep="", markup=False)
    return OK


def demo_model() -> Model:
    """Read the model that comes with clampz."""
    with resources.as_file(resources.files("clampz") / "data" / DEMO_MODEL) as path:
        return clampz.read(path)


def run_methods(model: Model, tell: Callable[[str], object]) -> list[TimedRun]:
    """Run every method on the model, the exact one first.

    Each is called twice and timed the second time, as the first call may compile its kernels; once, where kernels are
    not compiled at all.
    """
    methods: list[tuple[str, Callable[[], Estimate]]] = [
        ("exact", lambda: clampz.exact(model)),
        ("mean field", lambda: clampz.mean_field(model)),
        ("Bethe", lambda: clampz.bethe(model)),
        ("TRW optimized", lambda: clampz.trw(model, edge_weights="optimized")),
        ("TRW uniform", lambda: clampz.trw(model)),
    ]
    runs = []
    for number, (label, method) in enumerate(methods, start=1):
        tell(f"{number} of {len(methods)}: {label} [dim](compiling kernels, once)[/dim]")
        if COMPILES:
            method()
        started = time.perf_counter()
        estimate = method()
        runs.append(TimedRun(label, estimate, 1000 * (time.perf_counter() - started)))
    return runs


def table_of(runs: Sequence[TimedRun]) -> "Table":
    """Return the runs as a table, with errors against the first run, the exact one."""
    truth = runs[0].estimate.log_z
    times = ["ms"] if COMPILES else []  # of Python they would say nothing
    table = new_table("method", "log Z", "is", "error", "sweeps", "converged", *times, left=("is",))
    for label, estimate, milliseconds in runs:
        exact = estimate.bound == "exact"
        table.add_row(
            label,
            round_outward(estimate.log_z, estimate.bound, 4),
            KINDS[estimate.bound],
            "" if exact else f"{estimate.log_z - truth:+.4f}",
            "" if exact else str(estimate.num_iter),
            "" if exact else "yes" if estimate.converged else f"no ({estimate.stopped_by})",
            *(f"{milliseconds:.1f}" for _ in times),
            style="bold" if exact else None,
        )
    return table
