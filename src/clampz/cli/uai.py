"""`clampz uai`: the calling convention of the UAI inference competitions.

    solver model evidence query task

The result goes to a file in the working directory with the model's name and the task: model.uai.PR, model.uai.MAR.  The
query is for tasks that clampz does not have, and is not looked at.  The limits of the competitions are taken from the
environment: INF_TIME in seconds, INF_MEMORY in gigabytes.
"""

import argparse
import math
import os
from pathlib import Path
from typing import Any

from clampz import choosing
from clampz.choosing import Solution
from clampz.cli.common import INTERRUPTED, OK, CommandError, Listener, add_command, check_file, watched
from clampz.cli.solve import TASKS, write_result
from clampz.errors import EvidenceError
from clampz.io import evidence, uai
from clampz.model import Model
from clampz.model.fixing import given

# What of INF_TIME is left for starting, reading and writing: a share, and seconds.
TIME_SHARE, TIME_BEFORE = 0.9, 2.0


def add(commands: Any) -> None:
    parser = add_command(
        commands,
        "uai",
        solve_for_competition,
        summary="solve a model as the UAI competitions ask for it",
        description="Solve a model and write the result to a file in the working directory that has the model's name and the task: model.uai.PR has log10 Z,\n"
        "model.uai.MAR the marginals.  The environment may limit it: INF_TIME in seconds, INF_MEMORY in gigabytes.",
        examples="  clampz uai Nets/grid5x5.uai Evid/grid5x5.uai.evid Query/grid5x5.uai.query PR     writes ./grid5x5.uai.PR\n"
        "  INF_TIME=60 clampz uai model.uai - - MAR                                         no evidence, no query",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a UAI file")
    parser.add_argument("evidence", metavar="EVIDENCE", help="a file, or - for none")
    parser.add_argument("query", metavar="QUERY", help="a file, or -: not looked at, as neither task has a query")
    parser.add_argument("task", metavar="TASK", choices=TASKS, help="PR or MAR")


def solve_for_competition(args: argparse.Namespace) -> int:
    """Solve the model and write the result file."""
    out = Path(f"{args.model.name}.{args.task}")
    check_file(out, "result")
    time, memory = limit("INF_TIME", "seconds"), limit("INF_MEMORY", "gigabytes")
    model = read(args.model, args.evidence)

    def work(listener: Listener) -> Solution:
        return choosing.solve(
            model,
            time=None if time is None else max(TIME_SHARE * time - TIME_BEFORE, 0.1),
            memory=None if memory is None else int(memory * TIME_SHARE * 2**30),
            marginals=args.task == "MAR",
            progress=listener,
        )

    solution, interrupted = watched(work, "solving")
    write_result(solution, args.task, out)
    print(
        f"{out}: {solution.method.replace('_', ' ')}, log Z = {solution.log_z:.6f} in [{solution.lower:.6f}, {solution.upper:.6f}]"
    )
    return INTERRUPTED if interrupted else OK


def read(path: Path, known: str) -> Model:
    """The model, whatever its file is called, with its evidence."""
    model = uai.read(path)
    if known == "-":
        return model
    try:
        return given(model, evidence.read(known, model))
    except EvidenceError as error:
        raise EvidenceError(f"{known}: {error}") from None


def limit(name: str, unit: str) -> float | None:
    """A limit from the environment."""
    text = os.environ.get(name, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value > 0:
        raise CommandError(f"{name}: expected {unit} > 0 in the environment, found {text!r}")
    return value
