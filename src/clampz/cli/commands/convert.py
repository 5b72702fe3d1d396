"""`clampz convert`: a model from one format to another."""

import argparse
from pathlib import Path

from clampz.cli import arguments
from clampz.cli.exit_codes import OK
from clampz.cli.outputs import MODEL_FORMS, model_encoders, requested_output
from clampz.runtime.budget import end_at_once, on_ctrl_c

SUMMARY = "write a model in another format"
DESCRIPTION = """Read a model and write it in the format that the second file's name asks for: .uai, .fg, .json or
.npz, compressed if .gz follows.  clampz's own .json, for people, and .npz, for large models, keep names and every
digit; the others have no names.  With evidence, its variables are fixed in the new file."""
EXAMPLES = """\
  clampz convert model.uai model.json
  clampz convert model.fg model.uai.gz
  zcat model.uai.gz | clampz convert - - --format json | less
  clampz convert model.uai known.uai --evidence model.uai.evid"""


def add_arguments(parser: arguments.CommandParser) -> None:
    """Declare the arguments."""
    arguments.add_model(parser)
    parser.add_argument("out", type=Path, metavar="OUT", help="the file to write; - for standard output")
    arguments.add_format(parser, MODEL_FORMS)


def run(args: argparse.Namespace) -> int:
    """Read the model and write it in the other format."""
    out = requested_output(args, MODEL_FORMS, option="writing")
    model = arguments.read_model(args)
    with on_ctrl_c(end_at_once):
        out.write(model_encoders(model))
    return OK
