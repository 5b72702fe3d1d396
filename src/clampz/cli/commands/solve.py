"""`clampz solve`: log Z, bounds and marginals of a model in a file, as tables, JSON, CSV or a report.

The JSON has log_z, lower and upper (natural logarithms), bound, standard_error and statistical_interval_95 (where log_z
is an estimate by sampling, else null), method, reason, converged, interrupted, seconds, clamped, select, leaves (of the
bracket's tree, null where there is none), and with MAR the marginals, marginals_by ("exact", "sampling", or the method
that estimates them), marginals_are (in words) and marginal_errors (standard errors; null where there are none).  With
--event it is what `commands/event` says.  What JSON has no numbers for are strings that float() understands: "-inf",
"inf"; marginals where Z = 0 are null.  The CSV has the same in one row, of MAR a row for each state of each variable,
and of MPE a row for each configuration.
"""

import argparse
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from clampz.bounding.bracket import Bracket, statistical
from clampz.cli import arguments
from clampz.cli.bracket_view import statistical_data
from clampz.cli.commands import event, mode
from clampz.cli.exit_codes import INTERRUPTED, OK, AbandonedError, CommandError, require
from clampz.cli.live_progress import ProgressListener, run_interruptibly, run_to_the_end
from clampz.cli.outputs import as_csv, check_file, display_name, numbers_of, record_as_csv, requested_output, state_rows
from clampz.cli.tables import CTRL_C, facts, model_fact, new_table, num_shown, show, terminal_width
from clampz.display.formatting import DIGITS, counted, name_of, title
from clampz.errors import EvidenceError
from clampz.io import results
from clampz.model import Model
from clampz.solving import solve as solving
from clampz.solving.solution import Solution

SUMMARY = "log Z, bounds on it, and marginals; or the best configuration"
DESCRIPTION = """Compute log Z of a model, prove bounds on it, and print them with the reason for the method chosen:
exact inference if the model is narrow enough, otherwise an estimate inside a bracket that clamping tightens while
there is time (see clampz bound).  Logarithms are natural ones.  Without --time it takes 4 to 10 seconds on models
that are not solved exactly, and up to about a minute on those that are."""
EXAMPLES = """\
  clampz solve model.uai
  clampz solve model.uai --evidence model.uai.evid --task MAR
  clampz solve model.uai --event 3=1,7=0|2    the probability of that
  clampz solve model.uai --method trw --clamp 5 --select maxW+TRE
  clampz solve model.uai --time 60 --json | jq .log_z
  clampz solve model.uai --report model.html  a page about it, with pictures
  clampz solve model.uai --task MPE --out model.uai.MPE --plot model.png

JSON: log_z, lower, upper, bound, standard_error, statistical_interval_95, method, reason, converged, interrupted,
seconds, clamped, select, leaves; MAR: marginals, marginals_by, marginals_are, marginal_errors; MPE: score, lower,
upper, optimal, stopped_by, seconds, configuration, states and best (--num-best); infinities are "inf", "-inf"
"""

METHODS = ("auto", "exact", "mf", "bethe", "trw", "mini_buckets")
TASKS = ("PR", "MAR", *mode.TASKS)
FORMS = ("json", "csv", "uai")
# How the name of a file ends that is to have them: result files of the UAI competitions end in their task.
ENDINGS = {".json": "json", ".csv": "csv", **{f".{task}": "uai" for task in TASKS}}
# Variables up to which marginals are printed on a terminal, states up to which they have a column each, and how wide
# that is, and what says that there are more.
MAX_ROWS, MAX_COLUMNS, COLUMN, MORE = 60, 12, 11, 6
# Seconds for bounds and an estimate after Ctrl-C.
LAST_MOMENT = 2.0


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    arguments.add_model(parser)
    text = "PR: log Z alone; MAR: the marginals too; MPE, or MAP: the best configuration of all variables"
    parser.add_argument("--task", choices=TASKS, default="PR", help=f"{text} (default: %(default)s)")
    text, count = "with MPE: the best K configurations (default: %(default)s)", arguments.whole_number(1)
    parser.add_argument("--num-best", type=count, default=1, metavar="K", help=text)
    text = "instead of log Z, the probability that variables are in some states, by number or name, as in 3=1,7=0|2"
    parser.add_argument("--event", metavar="STATES", help=text)
    text = "auto chooses, and says why; others are run alone (default: %(default)s)"
    parser.add_argument("--method", choices=METHODS, default="auto", help=text)
    text = (
        "clamp K variables, the same in all branches; TRW then optimizes its edge weights, on from the parent's "
        "in every branch (default: with auto best first, as many as time allows, otherwise none)"
    )
    parser.add_argument("--clamp", type=arguments.whole_number(0), metavar="K", help=text)
    text = f"how to choose them: {', '.join(arguments.SELECTORS).replace('%', '%%')}"
    parser.add_argument("--select", choices=arguments.SELECTORS, metavar="NAME", help=text)
    text = (
        "time at most; the bracket has most of it (default: with auto 10, 4 of them for the bracket, or 60 if it "
        "can be solved exactly in that)"
    )
    parser.add_argument("--time", type=arguments.positive, metavar="SECONDS", help=text)
    text = "draw how the bracket closed, or what there is in its place; with MPE the best configuration, or how its "
    arguments.add_plot(parser, f"{text}bounds closed")
    text = (
        "write a page for a browser, .html: what the model is, what was done and why, the bracket over time, the "
        "marginals and the graph"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help=text)
    arguments.add_memory(parser, "memory that it may use beyond the model")
    arguments.add_threads_and_seed(parser)
    arguments.add_json(parser)
    text = (
        "write the result to a file: .json, .csv, or a result file of the UAI competitions, whose name ends in the "
        "task, as in model.uai.PR; - for standard output"
    )
    arguments.add_out(parser, text, forms=FORMS)


def run(args: argparse.Namespace) -> int:
    """Solve the model, and print, write and draw the result."""
    if args.event is None:
        out = requested_output(args, FORMS, endings=ENDINGS)
    else:
        out = requested_output(args, event.FORMS, with_what="--event")
    if args.report is not None:
        check_report(args)
    model = arguments.read_model(args)
    if args.event is not None:
        return event.run(args, model, out)
    if args.task in mode.TASKS:
        return mode.run(args, model, out)
    if args.num_best != 1:
        raise CommandError(f"--num-best {args.num_best}: a choice of task MPE, and {args.task} has none")
    if args.clamp is not None and args.clamp > model.num_variables:
        raise CommandError(f"--clamp {args.clamp}: expected at most {model.num_variables}, the number of variables")
    solution, interrupted = solution_of(args, model)
    data = solution_data(solution, args.model, args.task)
    out.deliver(
        args,
        data,
        lambda: print_solution(solution, args.model, args.task),
        solution,
        csv=lambda: as_csv(*marginal_rows(solution)) if args.task == "MAR" else record_as_csv(data),
        uai=lambda: result_file(solution, args.task),
    )
    if args.report is not None:  # drawing large models takes a while
        heading = f"log Z of {display_name(Path(args.model.name))}"
        run_to_the_end(lambda _: solution.report(args.report, heading), "writing the report")
    return INTERRUPTED if interrupted else OK


def solution_of(args: argparse.Namespace, model: Model) -> tuple[Solution, bool]:
    """Return what `solve` finds, and whether Ctrl-C stopped it: then there are bounds and an estimate all the same."""
    began, listener = time.perf_counter(), ProgressListener()

    options = {"method": args.method, "k": args.clamp, "select": args.select, **arguments.limits(args)}
    options["marginals"] = args.task == "MAR" or args.report is not None
    try:
        return run_interruptibly(lambda _: solving.solve(model, progress=listener, **options), "solving", listener)
    except AbandonedError:
        if args.method != "auto":
            raise
        solution = solve_in_a_moment(model, listener.bracket, args.memory, args.seed)
        return replace(solution, seconds=time.perf_counter() - began), True


def check_report(args: argparse.Namespace) -> None:
    """Refuse, before anything is computed, a report that could not be written, or on a task without one."""
    check_file(args.report, "--report", (".html", ".htm"))
    what = "--event" if args.event is not None else f"--task {args.task}" if args.task in mode.TASKS else ""
    if what:
        raise CommandError(f"--report {args.report}: it is about log Z and marginals, and there is none with {what}")
    require("matplotlib")


def solve_in_a_moment(model: Model, bracket: Bracket | None, memory: int | None, seed: int) -> Solution:
    """Return bounds and an estimate after Ctrl-C in the middle of what cannot be stopped, such as one exact sum.

    A bracket that was found before still holds, and is intersected with the new bounds.
    """
    found = solving.solve_in_a_moment(model, LAST_MOMENT, memory, seed)
    estimate = title(found.method)
    if bracket is None:
        reason = f"Exact inference was stopped, so mean field and TRW bracket log Z, and {estimate} is the estimate."
        return replace(found, interrupted=True, reason=reason)
    lower, upper = max(found.lower, bracket.lower), min(found.upper, bracket.upper)
    log_z = min(max(found.log_z, lower), upper)
    bound = found.bound
    if bound != "exact":
        bound = "lower" if log_z == lower else "upper" if log_z == upper else None
    leaves = counted(bracket.num_leaves, "leaf", "leaves")
    reason = f"Clamping was stopped while it closed the bracket ({leaves}), and {estimate} is the estimate."
    found = replace(found, bracket=bracket, interrupted=True, reason=reason)
    return replace(found, log_z=log_z, bound=bound, lower=lower, upper=upper)


def result_file(solution: Solution, task: str) -> bytes:
    """Encode a result file of the UAI competitions: log10 Z, or the marginals.

    Marginals that there was no time for are even odds, as such a file has a number for every state.
    """
    if task == "PR":
        return results.encode_pr(solution.log_z)
    if solution.log_z == -math.inf:
        raise EvidenceError("Z = 0: every configuration has probability zero, so there are no marginals")
    possible, marginals = (solution.model.unary.flat > -math.inf).astype(np.float64), solution.marginals
    start, sizes = solution.model.unary.start, solution.model.num_states
    even = possible / np.repeat(np.add.reduceat(possible, start[:-1]), sizes) if len(sizes) else possible
    return results.encode_mar(marginals.with_flat(np.where(np.isnan(marginals.flat), even, marginals.flat)))


def marginal_rows(solution: Solution) -> tuple[list[str], list[list[object]]]:
    """Return columns and rows of the marginals, a row for each state, with standard errors where there are any."""
    errors = solution.marginal_errors
    flat = [solution.marginals.flat] + ([] if errors is None else [errors.flat])
    states = state_rows(solution.model, range(solution.model.num_variables))
    rows = [[*row, *numbers] for row, *numbers in zip(states, *(values.tolist() for values in flat), strict=True)]
    return ["variable", "state", "probability", "standard_error"][: 2 + len(flat)], rows


def solution_data(solution: Solution, path: Path, task: str) -> dict[str, Any]:
    """Return the solution as JSON can hold it."""
    model = solution.model
    data: dict[str, Any] = {
        "model": str(path),
        "task": task,
        **numbers_of(solution, "log_z", "lower", "upper"),
        "bound": solution.bound,
        **statistical_data(solution),
        "method": solution.method,
        "reason": solution.reason,
        "converged": solution.converged,
        "interrupted": solution.interrupted,
        "seconds": round(solution.seconds, 6),
        "clamped": [name_of(model.names, i) if model.names else i for i in solution.variables],
        "select": solution.select,
        "leaves": None if solution.bracket is None else solution.bracket.num_leaves,
    }
    if task == "MAR":
        data["marginals_by"], data["marginals_are"] = solution.marginals_by, solution.marginals_are
        errors = solution.marginal_errors
        data["marginal_errors"] = None if errors is None else [row.tolist() for row in errors]
        data["marginals"] = [[None if math.isnan(p) else p for p in row.tolist()] for row in solution.marginals]
    return data


# -- for people -------------------------------------------------------------------------------------------------------


def print_solution(solution: Solution, path: Path, task: str) -> None:
    """Print the solution as a table, and the marginals if they were asked for."""
    log_z, kind = solution.log_z_in_words(DIGITS)
    stopped = f"; {CTRL_C}" if solution.interrupted else ""
    rows = [
        model_fact(path, solution.model),
        ("log Z", f"{log_z}  ({kind}; log10 Z = {solution.log_z / math.log(10):.{DIGITS}f})"),
        *statistical(solution),
        ("proven", solution.bounds_in_words(DIGITS)),
        ("method", solution.method_in_words),
        ("why", solution.reason),
        *([("marginals", solution.marginals_are)] if task == "MAR" else []),
        ("seconds", f"{solution.seconds:.2f}{stopped}"),
    ]
    show(facts(rows))
    if task == "MAR":
        print_marginals(solution)


def print_marginals(solution: Solution) -> None:
    """Print a row for each variable."""
    model = solution.model
    shown = num_shown(model, MAX_ROWS)
    most = int(model.num_states[:shown].max(initial=0))
    longest = max([len("variable"), *(len(name_of(model.names, i)) for i in range(shown))])
    room = terminal_width() - longest - 2
    columns = min(most, MAX_COLUMNS, room // COLUMN)
    if columns < most:
        columns = max(1, min(columns, (room - MORE) // COLUMN))
    table = new_table("variable", *(f"P({a})" for a in range(columns)), *(["..."] if most > columns else []))
    for i in range(shown):
        row = solution.marginals[i]
        table.add_row(name_of(model.names, i), *(f"{p:.{DIGITS}f}" for p in row[:columns]))
    show(table)
    if shown < model.num_variables or most > columns:
        show("[dim]All of them: --json, or --out FILE[/dim]")
