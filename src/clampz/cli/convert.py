"""`clampz convert`: a model from one format to another."""

import argparse
from pathlib import Path
from typing import Any

import clampz
from clampz.cli.common import OK, add_command, add_model, check_file, ctrl_c_ends, read_model


def add(commands: Any) -> None:
    parser = add_command(
        commands,
        "convert",
        convert,
        summary="write a model in another format",
        description="Read a model and write it in the format that the second file's name asks for: .uai or .fg, compressed if .gz follows.\n"
        "With evidence, its variables are fixed in the new file.",
        examples="  clampz convert model.uai model.fg\n  clampz convert model.fg model.uai.gz\n  clampz convert model.uai known.uai --evidence model.uai.evid",
    )
    add_model(parser)
    parser.add_argument("out", type=Path, metavar="OUT", help="the file to write")


def convert(args: argparse.Namespace) -> int:
    """Read and write."""
    check_file(args.out, "writing")
    model = read_model(args)
    with ctrl_c_ends():
        clampz.write(model, args.out)
    return OK
