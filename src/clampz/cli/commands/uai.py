"""`clampz uai`: the calling convention of the UAI inference competitions.

    solver model evidence query task

The result goes to a file in the working directory with the model's name and the task: model.uai.PR, model.uai.MAR,
model.uai.MPE.  The query is for tasks that clampz does not have, and is not looked at: MAP is of all variables, as MPE.
The limits of the competitions are taken from the environment, in their units: INF_TIME in seconds, INF_MEMORY in
gigabytes; --memory is written as everywhere.
"""

import argparse
import os
from pathlib import Path

from clampz.cli import arguments
from clampz.cli.commands import mode
from clampz.cli.commands.solve import TASKS, result_file
from clampz.cli.exit_codes import INTERRUPTED, OK, CommandError
from clampz.cli.live_progress import run_interruptibly
from clampz.cli.outputs import STANDARD_STREAM, check_file
from clampz.display.formatting import title
from clampz.io import evidence, files, uai
from clampz.model import Model
from clampz.solving import solve as solving

SUMMARY = "solve a model as the UAI competitions ask for it"
DESCRIPTION = """Solve a model and write the result to a file in the working directory that has the model's name and
the task: model.uai.PR has log10 Z, model.uai.MAR the marginals, model.uai.MPE the best configuration.  The
environment may limit it, in the competitions' units: INF_TIME in seconds, INF_MEMORY in gigabytes."""
EXAMPLES = """\
  clampz uai Nets/grid.uai Evid/grid.uai.evid - PR  writes ./grid.uai.PR
  INF_TIME=60 clampz uai model.uai - - MAR          no evidence, no query"""

# What of INF_TIME is left for starting, reading and writing: a share, and seconds.
TIME_SHARE, TIME_BEFORE = 0.9, 2.0


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="a UAI file")
    parser.add_argument("evidence", type=Path, metavar="EVIDENCE", help="a file, or - for none")
    parser.add_argument("query", type=Path, metavar="QUERY", help="a file, or -: not looked at, as no task has a query")
    parser.add_argument("task", metavar="TASK", choices=TASKS, help="PR, MAR or MPE; MAP is MPE")
    arguments.add_memory(parser, "memory that it may use beyond the model, whatever INF_MEMORY says")


def run(args: argparse.Namespace) -> int:
    """Solve the model and write the result file."""
    if args.model == STANDARD_STREAM:
        raise CommandError("MODEL -: expected a file, whose name the result has, found standard input")
    out = Path(f"{args.model.name}.{args.task}")
    check_file(out, "result")
    time, memory = environment_limit("INF_TIME", "seconds"), args.memory
    gigabytes = environment_limit("INF_MEMORY", "gigabytes")
    if memory is None and gigabytes is not None:
        memory = int(gigabytes * TIME_SHARE * 2**30)
    model = read(args.model, str(args.evidence))
    seconds = None if time is None else max(TIME_SHARE * time - TIME_BEFORE, 0.1)
    if args.task in mode.TASKS:
        found, interrupted = mode.best(model, time=seconds, memory=memory, rng=0)
        files.replace(out, mode.result_file(found, args.task))
        print(f"{out}: score {found.score:.6f}, at most {found.upper:.6f}{' (optimal)' if found.is_optimal else ''}")
        return INTERRUPTED if interrupted else OK
    options = {"time": seconds, "memory": memory, "marginals": args.task == "MAR"}
    solution, interrupted = run_interruptibly(
        lambda listener: solving.solve(model, progress=listener, **options), "solving"
    )
    files.replace(out, result_file(solution, args.task))
    proven = f"[{solution.lower:.6f}, {solution.upper:.6f}]"
    marginals = f"; marginals: {solution.marginals_are}" if args.task == "MAR" else ""
    print(f"{out}: {title(solution.method)}, log Z = {solution.log_z:.6f} in {proven}{marginals}")
    return INTERRUPTED if interrupted else OK


def read(path: Path, known: str) -> Model:
    """Read a model in the UAI format, whatever its file is called, and condition it on its evidence."""
    model = uai.read(path)
    return model if known == "-" else evidence.under(model, known)


def environment_limit(name: str, unit: str) -> float | None:
    """Return the number that an environment variable holds, None where it is not set."""
    text = os.environ.get(name, "")
    if not text:
        return None
    try:
        return arguments.positive(text)
    except argparse.ArgumentTypeError:
        raise CommandError(f"{name}: expected {unit} > 0 in the environment, found {text!r}") from None
