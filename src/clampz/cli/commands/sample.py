"""`clampz sample`: configurations drawn from a model, in a file, as JSON and as a picture.

Files: .csv has a line for each sample, names of variables in the first (and log_weight in the last column where
samples are weighted), states by name where they have names; .json has what the samples are, with states by index; .npz
the arrays states and log_weights.
"""

import argparse
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from clampz.cli.arguments import (
    add_command,
    add_json,
    add_memory,
    add_model,
    add_out,
    add_seed,
    add_threads,
    positive,
    read_model,
    whole_number,
)
from clampz.cli.exit_codes import INTERRUPTED, OK, in_options, need
from clampz.cli.live_progress import Listener, watched
from clampz.cli.outputs import (
    as_json,
    as_number,
    asked_for,
    check_picture_path,
    save_picture,
    states_as_csv,
)
from clampz.cli.tables import facts, model_fact, new_table, show
from clampz.display.formatting import counted, name_of
from clampz.sampling.request import METHODS
from clampz.sampling.sample import sample
from clampz.sampling.samples import KINDS, Samples

FORMS = ("csv", "json", "npz")
# Variables that are printed: those that are least certain.
MOST_PRINTED = 10


def add(commands: Any) -> None:
    parser = add_command(
        commands,
        "sample",
        run,
        summary="draw configurations, exactly where that is possible",
        description="Draw configurations from the model: exactly by elimination where it is narrow enough, exactly by "
        "rejection where enough draws are accepted, and else with weights.  It says which.  Ctrl-C stops it with the "
        "samples that there are.",
        examples="  clampz sample model.uai --num 10000 --out samples.csv\n"
        "  clampz sample model.uai --evidence model.uai.evid --seed 7 --plot samples.png\n"
        "  clampz sample model.uai --method weighted --time 60 --out samples.npz\n\n"
        "JSON: kind, reason, num_samples, num_drawn, effective_size, log_z, interrupted, names, marginals, "
        "standard_errors; in a file the states and log_weights too",
    )
    add_model(parser)
    parser.add_argument(
        "--num", type=whole_number(1), default=1000, metavar="N", help="how many (default: %(default)s)"
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        help="auto takes the best that is possible; others are forced; gibbs is never exact (default: %(default)s)",
    )
    parser.add_argument("--max-table", type=whole_number(2), metavar="N", help="table entries of a clique at most")
    parser.add_argument("--time", type=positive, metavar="SECONDS", help="time at most (default: as long as it takes)")
    add_memory(parser, "memory at most")
    add_threads(parser)
    add_seed(parser)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw marginals and scores: .png, .svg or .pdf")
    add_json(parser, ": what the samples are, and their marginals")
    add_out(parser, "write the samples to a file: .csv, .json or .npz; - for standard output", forms=FORMS)


def run(args: argparse.Namespace) -> int:
    """Draw, and print, write and draw what came of it."""
    out = asked_for(args, FORMS)
    if args.plot is not None:
        check_picture_path(args.plot, "--plot")
        need("matplotlib")
    if not args.json and not out.is_standard:
        need("rich")
    model, listener = read_model(args), Listener()

    def work() -> Samples:
        limits = {"max_table": args.max_table, "time": args.time, "memory": args.memory, "threads": args.threads}
        return sample(model, args.num, method=args.method, rng=args.seed, progress=listener, **limits)

    samples, stopped = watched(work, "sampling", listener)
    out.give(sample_forms(samples, args.model))
    out.show(args.json, sample_data(samples, args.model), lambda: print_samples(samples, args.model))
    if args.plot is not None:
        save_picture(samples.plot().figure, args.plot)
    return INTERRUPTED if stopped else OK


def sample_forms(samples: Samples, path: Path) -> dict[str, Callable[[], bytes]]:
    """The samples in every form of a file."""
    states, log_weights = samples.states, samples.log_weights

    def as_npz() -> bytes:
        out = BytesIO()
        np.savez_compressed(out, states=states, log_weights=log_weights)
        return out.getvalue()

    def all_of_it() -> dict[str, Any]:
        return sample_data(samples, path) | {"states": states.tolist(), "log_weights": log_weights.tolist()}

    weights = {"log_weight": log_weights.tolist()} if samples.kind == "weighted" else {}
    return {
        "csv": lambda: states_as_csv(samples.model, states, **weights),
        "json": lambda: as_json(all_of_it()),
        "npz": as_npz,
    }


def sample_data(samples: Samples, path: Path) -> dict[str, Any]:
    """What they are, as JSON can hold it."""
    model = samples.model
    return {
        "model": str(path),
        "kind": samples.kind,
        "reason": samples.reason,
        "num_samples": len(samples),
        "num_drawn": samples.num_drawn,
        "effective_size": samples.effective_size,
        "log_z": as_number(samples.log_z),
        "interrupted": samples.stopped_by in ("interrupt", "callback"),
        "names": [name_of(model.names, i) for i in range(model.num_variables)],
        "marginals": [[as_number(p) for p in table.tolist()] for table in samples.marginals],
        "standard_errors": [[as_number(p) for p in table.tolist()] for table in samples.standard_errors],
    }


def print_samples(samples: Samples, path: Path) -> None:
    """What they are, and the variables that are least certain."""
    model = samples.model
    rows = [
        model_fact(path, model),
        ("samples", f"{len(samples):,}, {KINDS[samples.kind]}"),
        ("how", in_options(samples.reason)),
    ]
    if not samples.is_exact:
        rows.append(("worth", f"{samples.effective_size:,.1f} independent samples, about"))
    if samples.num_drawn != len(samples):
        rows.append(("drawn", counted(samples.num_drawn, "draw")))
    if np.isfinite(samples.log_z):
        rows.append(("log Z", f"{samples.log_z:.6f}" if samples.kind == "exact" else f"about {samples.log_z:.4f}"))
    show(facts(rows))
    if not len(samples) or not model.num_variables:
        return
    unsure = np.argsort([table.max() for table in samples.marginals], kind="stable")[:MOST_PRINTED]
    table = new_table("variable", "marginal", "± at most", left=("marginal",))
    for i in unsure.tolist():
        shares = "  ".join(f"{p:.4f}" for p in samples.marginals[i])
        table.add_row(name_of(model.names, i), shares, f"{samples.standard_errors[i].max():.4f}")
    show()
    show(table)
    if len(unsure) < model.num_variables:
        show(f"[dim]The {len(unsure)} least certain of {model.num_variables:,} variables; ± is a standard error.[/dim]")
