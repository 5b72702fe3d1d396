"""Standard input and output: `-` is either, output that is closed, full or not read is no traceback, and marks of
encodings are no error."""

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from running import answer, run

import clampz as cz
from clampz import cli
from clampz.cli import exit_codes

FULL = Path("/dev/full")


def give(monkeypatch, data):
    """Standard input of these bytes."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.fixture
def output(monkeypatch):
    """Put a file, or nothing, in the place of standard output."""

    def put(stream):
        monkeypatch.setattr(sys, "stdout", stream)

    return put


@pytest.mark.skipif(not FULL.exists(), reason="no full device")
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("info grid.uai --json", "clampz info"),
        ("convert grid.uai - --format json", "clampz convert"),
        ("--help", "clampz"),
    ],
)
def test_output_that_is_full_is_one_line(command, name, folder, capsys, output):
    with FULL.open("w") as full:
        output(full)
        assert run(*command.split()) == exit_codes.CUT_OFF
    assert capsys.readouterr().err == f"{name}: standard output: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="no full device")
def test_nothing_more_is_said_when_the_command_ends(folder):
    with FULL.open("wb") as full:
        command = [sys.executable, "-m", "clampz", "convert", "grid.uai", "-", "--format", "uai"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, b"clampz convert: standard output: No space left on device\n")


def test_output_that_is_closed_is_one_line_and_no_matter_where_there_is_none(folder, capsys, output, monkeypatch):
    for arguments in ("info grid.uai --json", "convert grid.uai - --format uai", "info grid.uai"):
        output(None)
        assert run(*arguments.split()) == exit_codes.CUT_OFF
        sys.stdout.close()
        assert capsys.readouterr().err == f"clampz {arguments.split()[0]}: standard output: closed\n"
    output(None)
    assert run("convert", "grid.uai", "grid.json") == 0
    sys.stdout.close()
    assert cz.read("grid.json").num_variables == 9
    monkeypatch.setattr(sys, "stderr", None)
    output(None)
    assert run("info", "nowhere.uai") == exit_codes.BAD_INPUT
    sys.stdout.close()
    sys.stderr.close()


def test_a_reader_that_goes_away_is_quiet(folder, capsys, output):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        output(stream)
        assert run("info", "grid.uai") == exit_codes.CUT_OFF
    assert capsys.readouterr().err == ""


def test_errors_of_the_system_name_the_file(folder, capsys, monkeypatch):
    def fails(*_):
        raise PermissionError(13, "Permission denied", "some.file")

    monkeypatch.setattr("clampz.cli.commands.info.describe", fails)
    monkeypatch.setattr(cli, "discard_output", lambda: None)  # (it is that of all tests)
    assert run("info", "grid.uai") == exit_codes.CUT_OFF
    assert capsys.readouterr().err == "clampz info: some.file: Permission denied\n"


@pytest.mark.parametrize("suffix", [".uai", ".fg", ".json", ".npz"])
def test_models_from_standard_input_in_any_format(folder, capsys, monkeypatch, suffix):
    model = cz.read("grid.uai")
    data = cz.io.FORMATS[suffix].encode(model)
    for bytes_of_it in (data, gzip.compress(data)):
        give(monkeypatch, bytes_of_it)
        found = answer(capsys, "solve", "-", "--json")
        assert (found["model"], found["log_z"]) == ("-", pytest.approx(cz.exact(model).log_z, abs=1e-9))


def test_people_read_where_a_model_came_from(folder, capsys, monkeypatch):
    for command in ("solve", "info"):
        give(monkeypatch, Path("grid.uai").read_bytes())
        assert run(command, "-") == 0
        assert capsys.readouterr().out.split("\n")[0].split(maxsplit=1)[1].startswith("standard input")


def test_evidence_from_standard_input(folder, capsys, monkeypatch):
    give(monkeypatch, b"\xef\xbb\xbf1 0 1\r\n")
    found = answer(capsys, "solve", "grid.uai", "--evidence", "-", "--json")
    assert found["log_z"] == pytest.approx(cz.exact(cz.read("grid.uai"), evidence={0: 1}).log_z, abs=1e-9)


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (b"", "solve -", "clampz solve: standard input, line 1: expected MARKOV or BAYES, found the end of the file"),
        (b"MARKOV 1", "info -", "standard input, line 1: expected the number of states of a variable, found the end"),
        (b'{"format": 1}', "info -", "standard input: expected 'version', found 'format'"),
        (b"1 99 0", "info grid.uai --evidence -", "standard input, line 1: expected a variable from 0 to 8, found 99"),
        (
            b"",
            "solve - --evidence -",
            "--evidence -: expected a file, found standard input, which the model is read from",
        ),
        (b"", "uai - - - PR", "MODEL -: expected a file, whose name the result has, found standard input"),
        (None, "info -", "-: expected standard input, found it closed"),
        (
            b"",
            "solve grid.uai --out -",
            "--out -: expected --format json, csv, uai, as - has no name to say it, found none",
        ),
        (b"", "convert grid.uai -", "writing -: expected --format uai, fg, json, npz, as - has no name to say it"),
        (b"", "sample grid.uai --format docx", "argument --format: invalid choice: 'docx'"),
        (b"", "solve grid.uai --event 0=1 --format uai", "--format uai: expected json, csv with --event"),
    ],
)
def test_what_cannot_be_read_or_written_there(data, arguments, message, folder, capsys, monkeypatch):
    give(monkeypatch, data or b"")
    if data is None:
        monkeypatch.setattr(sys, "stdin", None)
    assert run(*arguments.split()) == exit_codes.BAD_INPUT
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1


def test_models_to_standard_output(folder, capsysbinary):
    model = cz.read("grid.uai")
    for form in ("uai", "fg", "json", "npz"):
        assert run("convert", "grid.uai", "-", "--format", form) == 0
        out, err = capsysbinary.readouterr()
        assert err == b"" and cz.io.parse("-", out).num_edges == model.num_edges
    assert run("generate", "grid", "--size", "3", "--seed", "1", "-o", "-", "--format", "json") == 0
    assert json.loads(capsysbinary.readouterr().out)["num_states"] == [2] * 9


def test_a_terminal_is_spared_what_it_cannot_show(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert run("convert", "grid.uai", "-", "--format", "npz") == exit_codes.BAD_INPUT
    assert "writing -: expected a file or a pipe for npz, found a terminal" in capsys.readouterr().err
