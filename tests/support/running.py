"""Commands as tests run them."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from typing import Any

import pytest

import clampz as cz
from clampz import cli

EXACT = 1e-9
PNG = b"\x89PNG\r\n\x1a\n"


def run(*arguments: str) -> int:
    """The exit code of a command, also where the parser ends it."""
    try:
        return cli.main(list(arguments))
    except SystemExit as ending:
        assert isinstance(ending.code, int)
        return ending.code


def answer(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """The JSON that a command prints, and nothing else."""
    assert run(*arguments) == code
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def extras_imported_by(*arguments: str) -> str:
    """Those of rich and matplotlib that a command has imported, in a process of its own."""
    code = f"""import sys
from clampz.cli import main
main({list(arguments)!r})
print({{'rich', 'matplotlib'}} & set(sys.modules), file=sys.stderr)"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr


def table(text: str) -> dict[str, str]:
    return {line[:12].strip(): line[12:] for line in text.splitlines() if line[:12].strip()}


def press_ctrl_c(after: float) -> None:
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()


def a_bracket(lower: float, upper: float) -> cz.results.Bracket:
    found = cz.bound(cz.generators.cycle(3, rng=0))
    return replace(found, lower=lower, upper=upper, estimate=(lower + upper) / 2)
