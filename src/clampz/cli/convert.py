"""`clampz convert`: a model from one format to another."""

import argparse
from pathlib import Path
from typing import Any

import clampz
from clampz.cli.arguments import add_command, add_model, read_model
from clampz.cli.exits import OK
from clampz.cli.outputs import check_file
from clampz.watch import end_at_once, on_ctrl_c


def add(commands: Any) -> None:
    parser = add_command(
        commands,
        "convert",
        run,
        summary="write a model in another format",
        description="Read a model and write it in the format that the second file's name asks for: .uai or .fg,\n"
        "compressed if .gz follows.  With evidence, its variables are fixed in the new file.",
        examples="  clampz convert model.uai model.fg\n"
        "  clampz convert model.fg model.uai.gz\n"
        "  clampz convert model.uai known.uai --evidence model.uai.evid",
    )
    add_model(parser)
    parser.add_argument("out", type=Path, metavar="OUT", help="the file to write")


def run(args: argparse.Namespace) -> int:
    """Read and write."""
    check_file(args.out, "writing")
    model = read_model(args)
    with on_ctrl_c(end_at_once):
        clampz.write(model, args.out)
    return OK
