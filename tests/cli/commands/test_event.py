"""`clampz solve --event`, and evidence in words."""

import json
from pathlib import Path

import numpy as np
import pytest
from running import EXACT, answer, run, table

import clampz as cz
from clampz.cli.assignments import parse_assignments, parse_evidence
from clampz.cli.exit_codes import CommandError

NAMED = cz.Model([[0.0, 1.0], [0.0, 0.5, 1.0]], names=["a", "b"], state_names=[["no", "yes"], ["1", "2", "3"]])


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cz.write(cz.generators.grid(3, 3, rng=0), "grid.uai")


def test_the_probability_of_an_event(capsys):
    model = cz.read("grid.uai")
    data = answer(capsys, "solve", "grid.uai", "--event", "0=1, 4=0", "--evidence", "8=1", "--json")
    lanes = cz.exact(model, evidence=[{0: 1, 4: 0, 8: 1}, {8: 1}]).log_z
    p = np.exp(lanes[0] - lanes[1])
    assert data["lower"] - EXACT <= p <= data["upper"] + EXACT and data["upper"] - data["lower"] < EXACT
    assert data["log_lower"] - EXACT <= np.log(p) <= data["log_upper"] + EXACT
    assert data["event"] == {"0": [1], "4": [0]} and data["stopped_by"] == "exact" and not data["interrupted"]
    assert answer(capsys, "solve", "grid.uai", "--event", "0=0|1", "--json")["lower"] == 1.0
    assert answer(capsys, "solve", "grid.uai", "--event", "0=1", "--evidence", "0=0", "--json")["log_upper"] == "-inf"
    assert run("solve", "grid.uai", "--event", "0=1,4=0", "--evidence", "8=1", "--out", "event.json") == 0
    shown = table(capsys.readouterr().out)
    lower, _, upper = shown["proven"].partition(" <= P <= ")
    assert float(lower) <= p <= float(upper) and shown["event"].strip() == "0=1,4=0"
    assert json.loads(Path("event.json").read_text())["estimate"] == pytest.approx(p)


def test_evidence_in_words_is_that_of_a_file(capsys):
    Path("some.evid").write_text("2 0 1 5 0")
    for command in (("solve",), ("bound",)):
        by_file = answer(capsys, *command, "grid.uai", "--evidence", "some.evid", "--json")
        in_words = answer(capsys, *command, "grid.uai", "--evidence", "0=1,5=0", "--json")
        assert in_words["lower"] == by_file["lower"]
    assert answer(capsys, "info", "grid.uai", "--evidence", "0=1,5=0", "--json")["fixed"] == 2
    ranked = dict(
        answer(capsys, "scores", "grid.uai", "--evidence", "0=1", "--select", "maxW", "--json")["scores"]["maxW"]
    )
    assert ranked["0"] == 0.0


def test_names_come_before_numbers():
    assert parse_assignments(NAMED, "a=yes, 1=2|3", "--event") == {0: ["yes"], 1: ["2", "3"]}
    assert parse_evidence(NAMED, "b=3", "--evidence") == {1: "3"}
    assert parse_evidence(NAMED, "a=1", "--evidence") == {0: 1}  # its states have names, which are no numbers
    assert parse_assignments(NAMED, "", "--event") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", r"--event a: expected variable=state or variable=state\|state, found 'a'"),
        ("a=", r"expected variable=state"),
        ("c=yes", r"--event c=yes: unknown variable 'c'; this model has 'a', 'b'$"),
        ("7=yes", r"--event 7=yes: unknown variable 7: expected an index from 0 to 1$"),
        ("a=maybe", r"--event a=maybe: unknown state 'maybe' of variable 0; it has 'no', 'yes'"),
        ("b=0", r"unknown state '0' of variable 1; it has '1', '2', '3'"),
        ("a=yes,0=no", r"expected each variable once, found '0' again"),
    ],
)
def test_what_is_no_event_is_refused(text, message):
    with pytest.raises(CommandError, match=message):
        parse_assignments(NAMED, text, "--event")


def test_what_does_not_go_together_is_refused(capsys):
    assert run("solve", "grid.uai", "--event", "0=1", "--task", "MAR") == 2
    assert "--task: expected none with --event, found MAR" in capsys.readouterr().err
    for task in ("MPE", "MAP"):
        assert run("solve", "grid.uai", "--event", "0=1", "--task", task) == 2
        assert f"--task: expected none with --event, found {task}" in capsys.readouterr().err
    assert run("solve", "grid.uai", "--event", "0=1", "--num-best", "3") == 2
    assert "--num-best: expected none with --event, found 3" in capsys.readouterr().err
    assert run("solve", "grid.uai", "--num-best", "3") == 2
    assert "--num-best 3: a choice of task MPE, and PR has none" in capsys.readouterr().err
    assert run("solve", "grid.uai", "--event", "") == 2
    assert "--event: expected states of at least one variable" in capsys.readouterr().err
    assert run("solve", "grid.uai", "--evidence", "0=0|1") == 2
    assert "expected one state of variable 0, found 2" in capsys.readouterr().err
