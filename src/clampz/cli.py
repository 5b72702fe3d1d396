"""The command line.

Every command is a function `add_<name>(commands)` that declares its arguments and a function `<name>(args)` that runs it and returns the exit code:
0 when done, 2 for bad input (one line on stderr that says what was expected), 130 after Ctrl-C; 1 if the reader of its output goes away (`| head`).
Results go to stdout, everything else to stderr.
Only argparse is imported at the top: rich and matplotlib are extras, and slow to import.
"""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import clampz
from clampz.errors import ClampzError
from clampz.model import Model
from clampz.results import Estimate

if TYPE_CHECKING:
    from rich.table import Table

OK, CUT_OFF, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

# Made by `clampz.write(clampz.generators.grid(7, 7, toroidal=False, rng=0), "spin_glass_7x7.uai")`: a spin glass at the paper's strengths, theta in [-2, 2]
# and W in [-6, 6], small enough to be solved exactly.  tests/test_cli.py makes it again and compares.
DEMO_MODEL = "spin_glass_7x7.uai"
PICTURE_SUFFIXES = (".png", ".svg", ".pdf")


class CommandError(Exception):
    """Bad input to a command; the message is all the user sees."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.run is None:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except (CommandError, ClampzError) as error:
        print(f"clampz {args.command}: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # as rich does it; Python would complain once more when it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CUT_OFF


def make_parser() -> argparse.ArgumentParser:
    """The parser of every command."""
    parser = argparse.ArgumentParser(
        prog="clampz",
        description="Log-partition functions and marginals of discrete graphical models, with bounds you can trust.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"clampz {clampz.__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    add_demo(commands)
    add_paper(commands)
    return parser


# -- demo ---------------------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """One row of the demo."""

    label: str
    estimate: Estimate
    milliseconds: float


def add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="bracket log Z of a frustrated spin glass with every method, and draw it",
        description="Run exact, mean field, Bethe and TRW on a 7 x 7 spin glass that comes with clampz, print what they say of log Z, and write a picture.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, default=Path("clampz-demo.png"), metavar="FILE", help="the picture: .png, .svg or .pdf (default: %(default)s)")
    parser.set_defaults(run=demo)


def demo(args: argparse.Namespace) -> int:
    """Run every method on the bundled model, print a table, and write a picture."""
    check_picture_path(args.out)
    need("rich", "matplotlib")
    from rich.console import Console

    from clampz import plotting

    messages = Console(stderr=True)
    with ctrl_c_ends(), messages.status("reading the model") as status:
        model = demo_model()
        runs = run_methods(model, status.update)
        exact, others = runs[0], {run.label: run.estimate for run in runs[1:]}
        status.update("drawing")
        figure = plotting.plot_summary(model, exact.estimate, others)
        save_picture(figure, args.out)
    out = Console(highlight=False, soft_wrap=True)
    out.print(f"A 7 x 7 spin glass: {model!r}\n")
    out.print(table_of(runs), soft_wrap=False)
    lower, upper = max(run.estimate.lower for run in runs[1:]), min(run.estimate.upper for run in runs[1:])
    bethe = next(run.estimate for run in runs if run.estimate.method == "bethe")
    low, high = plotting.round_outward(lower, "lower", 4), plotting.round_outward(upper, "upper", 4)
    out.print(f"[bold]{low} <= log Z <= {high}[/bold], proven by mean field (below) and TRW (above).")
    out.print(f"Bethe is nearer, off by {bethe.log_z - exact.estimate.log_z:+.4f}, but proves nothing.")
    out.print("\nPicture: ", args.out, sep="", markup=False)
    return OK


def demo_model() -> Model:
    """The model that comes with clampz."""
    with resources.as_file(resources.files("clampz") / "data" / DEMO_MODEL) as path:
        return clampz.read(path)


def run_methods(model: Model, tell: Callable[[str], object]) -> list[Run]:
    """Every method on the model, the exact one first; each is called twice and timed the second time, as the first call may compile its kernels."""
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
        method()
        started = time.perf_counter()
        estimate = method()
        runs.append(Run(label, estimate, 1000 * (time.perf_counter() - started)))
    return runs


def table_of(runs: Sequence[Run]) -> "Table":
    """The runs as a table, the exact one first."""
    from rich import box
    from rich.table import Table

    from clampz.plotting import KINDS, round_outward

    truth = runs[0].estimate.log_z
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    table.add_column("method", no_wrap=True)
    for header in ("log Z", "is", "error", "sweeps", "converged", "ms"):
        table.add_column(header, justify="left" if header == "is" else "right", no_wrap=True)
    for label, estimate, milliseconds in runs:
        exact = estimate.bound == "exact"
        table.add_row(
            label,
            round_outward(estimate.log_z, estimate.bound, 4),
            KINDS[estimate.bound],
            "" if exact else f"{estimate.log_z - truth:+.4f}",
            "" if exact else str(estimate.num_iter),
            "" if exact else "yes" if estimate.converged else f"no ({estimate.stopped_by})",
            f"{milliseconds:.1f}",
            style="bold" if exact else None,
        )
    return table


# -- paper --------------------------------------------------------------------------------------------------------------------


def add_paper(commands: Any) -> None:
    parser = commands.add_parser(
        "paper",
        help="reproduce the paper: its runs, its figures, and a report on its claims",
        description="Make the runs of Weller & Domke, 'Clamping Improves TRW and Mean Field Approximations' (2016), draw its figures and check its claims.\n"
        "Every finished run is kept at once: the same command goes on where it was stopped.",
        epilog="examples:\n"
        "  clampz paper --quick                             a few runs of each family, all figures, in minutes\n"
        "  clampz paper                                     100 runs of each of the 44 families\n"
        "  clampz paper --figure success --family grid --size 49 --weights=-6,6 --runs 20 --out results/grid49\n"
        "  clampz paper --scheduler tcp://host:8786         on a Dask cluster: pip install 'clampz[cluster]'\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--quick", action="store_true", help="a few runs of each family")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of each family, as in --runs 20 (default: 100, and 3 for times, 10 for optimal sequences)")
    parser.add_argument("--figure", action="append", metavar="NAME", help="only this figure, as in --figure success; may be repeated")
    parser.add_argument(
        "--family", action="append", metavar="NAME", help="only grid, er, regular or complete, or one family: --family 'grid49[-6,6]'; may be repeated"
    )
    parser.add_argument("--size", action="append", type=int, metavar="N", help="only models of so many variables, as in --size 49; may be repeated")
    parser.add_argument("--weights", action="append", metavar="LOW,HIGH", help="only this range of W, as in --weights=-6,6; may be repeated")
    parser.add_argument(
        "--ours", action="store_true", help="also with our own settings (restarts, warm starts, optimized edge weights), as curves of their own"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results/paper"), metavar="FOLDER", help="where results go, as in --out results/grid49 (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes, as in --jobs 4 (default: all cores)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster to run on, as in --scheduler tcp://host:8786")
    parser.set_defaults(run=paper)


def paper(args: argparse.Namespace) -> int:
    """Reproduce the paper; see `clampz.paper.command`."""
    from clampz.paper import command

    return command.paper(args)


# -- what commands share --------------------------------------------------------------------------------------------------------


def check_picture_path(path: Path) -> None:
    """Refuse, before anything is computed, a picture that could not be written."""
    if path.is_dir():
        raise CommandError(f"--out {path}: expected a file, found a directory")
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise CommandError(f"--out {path}: expected a name that ends in {', '.join(PICTURE_SUFFIXES)}, found {path.suffix or 'no suffix'!r}")
    if not path.parent.is_dir():
        raise CommandError(f"--out {path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"--out {path}: no permission to write there")


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure, whole or not at all, over what is there."""
    partial = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        figure.savefig(partial)
        partial.replace(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)


def need(*modules: str) -> None:
    """Refuse to go on without the extras of the command line."""
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise CommandError(f"this command needs {' and '.join(modules)}, and {module} is not installed: pip install 'clampz[cli]'") from None


@contextmanager
def ctrl_c_ends() -> Iterator[None]:
    """Let Ctrl-C end the command at once, where by default a method would stop early and return what it has."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(signum: int, frame: Any) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
