"""`clampz sample`: configurations drawn from a model, in a file, as JSON and as a picture.

Files: .csv has a line for each sample, names of variables in the first (and log_weight in the last column where
samples are weighted), states by name where they have names; .json has what the samples are, with states by index; .npz
the arrays states and log_weights.
"""

import argparse
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from clampz.cli import arguments
from clampz.cli.exit_codes import INTERRUPTED, OK, as_flags
from clampz.cli.live_progress import run_interruptibly
from clampz.cli.outputs import as_json, as_number, requested_output, states_as_csv
from clampz.cli.tables import facts, model_fact, new_table, show
from clampz.display.formatting import counted, name_of
from clampz.sampling.request import METHODS
from clampz.sampling.sample import sample
from clampz.sampling.samples import KINDS, Samples

SUMMARY = "draw configurations, exactly where that is possible"
DESCRIPTION = """Draw configurations from the model: exactly by elimination where it is narrow enough, exactly by
rejection where enough draws are accepted, and else with weights.  It says which.  Ctrl-C stops it with the samples
that there are."""
EXAMPLES = """\
  clampz sample model.uai --num 10000 --out samples.csv
  clampz sample model.uai --evidence model.uai.evid --seed 7 --plot samples.png
  clampz sample model.uai --method weighted --time 60 --out samples.npz

JSON: kind, reason, num_samples, num_drawn, effective_size, log_z, interrupted, names, marginals, standard_errors; in
a file the states and log_weights too"""

FORMS = ("csv", "json", "npz")
# Variables that are printed: those that are least certain.
MOST_PRINTED = 10


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    arguments.add_model(parser)
    text, count = "how many (default: %(default)s)", arguments.whole_number
    parser.add_argument("--num", type=count(1), default=1000, metavar="N", help=text)
    text = "auto takes the best that is possible; others are forced; gibbs is never exact (default: %(default)s)"
    parser.add_argument("--method", choices=METHODS, default="auto", help=text)
    parser.add_argument("--max-table", type=count(2), metavar="N", help="table entries of a clique at most")
    text = "time at most (default: as long as it takes)"
    parser.add_argument("--time", type=arguments.positive, metavar="SECONDS", help=text)
    arguments.add_memory(parser, "memory at most")
    arguments.add_threads_and_seed(parser)
    arguments.add_plot(parser, "draw marginals and scores")
    arguments.add_json(parser, ": what the samples are, and their marginals")
    text = "write the samples to a file: .csv, .json or .npz; - for standard output"
    arguments.add_out(parser, text, forms=FORMS)


def run(args: argparse.Namespace) -> int:
    """Draw samples, and print, write and draw them."""
    out = requested_output(args, FORMS)
    model = arguments.read_model(args)
    options = {"method": args.method, "max_table": args.max_table, **arguments.limits(args)}
    samples, stopped = run_interruptibly(
        lambda listener: sample(model, args.num, progress=listener, **options), "sampling"
    )
    data, states, log_weights = sample_data(samples, args.model), samples.states, samples.log_weights
    weights = {"log_weight": log_weights.tolist()} if samples.kind == "weighted" else {}

    def npz() -> bytes:
        out = BytesIO()
        np.savez_compressed(out, states=states, log_weights=log_weights)
        return out.getvalue()

    out.deliver(
        args,
        data,
        lambda: print_samples(samples, args.model),
        samples,
        csv=lambda: states_as_csv(model, states, **weights),
        json=lambda: as_json(data | {"states": states.tolist(), "log_weights": log_weights.tolist()}),
        npz=npz,
    )
    return INTERRUPTED if stopped else OK


def sample_data(samples: Samples, path: Path) -> dict[str, Any]:
    """Return what the samples are, as JSON can hold it."""
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
    """Print what the samples are, and the variables that are least certain."""
    model = samples.model
    rows = [
        model_fact(path, model),
        ("samples", f"{len(samples):,}, {KINDS[samples.kind]}"),
        ("how", as_flags(samples.reason)),
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
