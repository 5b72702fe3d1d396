"""Files and pictures that commands leave."""

import csv
import gzip
import json
import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from running import EXACT, answer, run

import clampz as cz
from clampz.cli import exit_codes, outputs
from clampz.solving import solve as solving


def test_a_picture_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    class Unwritable(Figure):
        def savefig(self, path: Path) -> None:
            path.write_text("half of it")
            raise OSError(28, "No space left on device")

    (tmp_path / "picture.png").write_text("old")
    with pytest.raises(exit_codes.CommandError, match="No space left on device"):
        outputs.save_picture(Unwritable(), tmp_path / "picture.png")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_an_unwritable_folder_is_refused_before_computing(folder, capsys, monkeypatch):
    (folder / "closed").mkdir(mode=0o500)
    monkeypatch.setattr(solving, "solve", lambda *args, **options: pytest.fail("computed"))
    assert run("solve", "grid.uai", "--out", "closed/r.json") == 2
    assert "no permission to write there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "endings"),
    [
        ("solve lawn.json", ".json, .csv, .PR, .MAR, .MPE, .MAP"),
        ("solve lawn.json --json", ".json, .csv, .PR, .MAR, .MPE, .MAP"),
        ("solve lawn.json --event Régen=yes", ".json, .csv"),
        ("bound lawn.json", ".json, .csv"),
        ("sample lawn.json", ".csv, .json, .npz"),
    ],
)
@pytest.mark.parametrize(("name", "ending"), [("r.xlsx", ".xlsx"), ("r", "no suffix"), ("r.uai", ".uai")])
def test_a_name_that_does_not_say_its_form_is_refused_before_anything_is_read(
    folder, capsys, command, endings, name, ending
):
    assert run(*command.split(), "--out", name) == 2  # there is no lawn.json
    assert f"--out {name}: expected a name that ends in {endings}, found '{ending}'" in capsys.readouterr().err


# -- CSV ---------------------------------------------------------------------------------------------------------------


def rows(path):
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def lawn(folder):
    """A model with names, in a file that keeps them."""
    model = cz.Model(
        [[0.0, -1.0], [0.0, 0.3, 0.1]],
        {(0, 1): [[1, 0, 0], [-2, 0, 2]]},
        names=["Régen", "grass, all"],
        state_names=[["no", "yes"], ["dry", "damp", "wet"]],
    )
    cz.write(model, "lawn.json")
    return model


def test_log_z_is_a_row(lawn, capsys):
    assert run("solve", "lawn.json", "--out", "r.csv") == 0
    (row,) = rows("r.csv")
    assert float(row["log_z"]) == pytest.approx(cz.exact(lawn).log_z, abs=EXACT)
    assert (row["bound"], row["method"], row["clamped"], row["standard_error"]) == ("exact", "exact", "", "")
    assert run("solve", "lawn.json", "--method", "mf", "--clamp", "2", "--out", "r.csv") == 0
    assert rows("r.csv")[0]["clamped"] in ("Régen grass, all", "grass, all Régen")


def test_marginals_are_a_row_for_each_state(lawn, capsys):
    for arguments in (("solve", "lawn.json", "--task", "MAR"), ("bound", "lawn.json", "--marginals", "all")):
        assert run(*arguments, "--out", "r.csv") == 0
        found = rows("r.csv")
        assert [row["variable"] for row in found] == ["Régen"] * 2 + ["grass, all"] * 3
        assert [row["state"] for row in found] == ["no", "yes", "dry", "damp", "wet"]
        for row, p in zip(found, cz.exact(lawn).marginals.flat, strict=True):
            assert float(row.get("lower", p - EXACT)) - EXACT <= p <= float(row.get("upper", p + EXACT)) + EXACT
            assert float(row.get("probability", p)) == pytest.approx(p, abs=EXACT)


def test_configurations_are_a_row_each(lawn, capsys):
    assert run("solve", "lawn.json", "--task", "MPE", "--num-best", "2", "--out", "r.csv") == 0
    best, second = rows("r.csv")
    assert {name: best[name] for name in lawn.names} == cz.mode(lawn).configuration
    assert float(best["score"]) == pytest.approx(cz.mode(lawn).score) and float(second["score"]) < float(best["score"])
    assert run("sample", "lawn.json", "--num", "4", "--out", "s.csv.gz") == 0
    with gzip.open("s.csv.gz", "rt", encoding="utf-8") as file:
        assert [set(row) for row in csv.DictReader(file)] == [set(lawn.names)] * 4


def test_brackets_and_events_in_rows(lawn, capsys):
    assert run("bound", "lawn.json", "--out", "b.csv") == 0
    last = rows("b.csv")[-1]
    assert float(last["lower"]) - EXACT <= cz.exact(lawn).log_z <= float(last["upper"]) + EXACT
    assert run("solve", "lawn.json", "--event", "Régen=yes", "--out", "e.csv") == 0
    (event,) = rows("e.csv")
    assert event["event"] == "Régen=yes"
    assert float(event["lower"]) <= cz.exact(lawn).marginal("Régen")[1] <= float(event["upper"])


def test_json_is_printed_unless_it_is_in_the_file(lawn, capsys):
    assert "log_z" in answer(capsys, "solve", "lawn.json", "--json", "--out", "r.csv")
    for name, *said in (("r.json",), ("r.other", "--format", "json")):
        assert run("solve", "lawn.json", "--json", "--out", name, *said) == 0
        assert capsys.readouterr().out == "" and "log_z" in Path(name).read_text(encoding="utf-8")
    assert run("solve", "lawn.json", "--format", "json") == 0  # the same as --json
    assert json.loads(capsys.readouterr().out)["log_z"] == pytest.approx(cz.exact(lawn).log_z, abs=EXACT)
    assert run("solve", "lawn.json", "--json", "--format", "uai") == 0
    assert capsys.readouterr().out.startswith("PR\n")


def test_converting_keeps_names(lawn):
    for name in ("a.npz", "b.json.gz"):
        assert run("convert", "lawn.json", name) == 0
        assert cz.read(name) == lawn
    assert run("convert", "lawn.json", "x.txt", "--format", "npz") == 0
    assert cz.io.npz_model.read("x.txt") == lawn
