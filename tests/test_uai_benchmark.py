"""What `benchmarks/uai.py` reads, keeps and concludes; its runs, in processes of their own, are not made here."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import clampz as cz
import uai
from clampz.io.results import write_mar, write_pr

MODEL = cz.Model.from_factors([2, 3, 2], [((0, 1), [[0.0, 1.0, 0.5], [1.0, 0.0, 0.2]]), ((1, 2), np.eye(3, 2))])


@pytest.fixture
def folder(tmp_path):
    """Three models: one with all that may be beside it, one compressed with log Z in the list, one with nothing."""
    here = tmp_path / "models"
    here.mkdir()
    cz.write(MODEL, here / "all.uai")
    (here / "all.uai.evid").write_text("1 0 1\n")
    write_pr(-2.5, here / "all.uai.PR")
    write_mar(cz.exact(MODEL, evidence={0: 1}).marginals, here / "all.uai.MAR")
    cz.write(MODEL, here / "packed.uai.gz")
    cz.write(MODEL, here / "plain.uai")
    values = {"packed": {"logZ": 1.25}, "plain": {"logZ": None}, "elsewhere": {"logZ": 3.0}}
    (tmp_path / "models.json").write_text(json.dumps(values))
    return here


def test_models_with_what_is_beside_them(folder):
    every, packed, plain = uai.known_models(folder)
    assert (every.name, every.evidence, every.marginals) == ("all", folder / "all.uai.evid", folder / "all.uai.MAR")
    assert every.log_z == pytest.approx(-2.5, abs=1e-12)
    assert (packed.name, packed.model, packed.log_z) == ("packed", folder / "packed.uai.gz", 1.25)
    assert plain == uai.Known("plain", folder / "plain.uai", None, None, None)
    assert [known.name for known in uai.known_models(folder, only="p*")] == ["packed", "plain"]


def test_values_that_are_given_count_before_those_beside(folder, tmp_path):
    (tmp_path / "other.json").write_text(json.dumps({"all": {"logZ": -3.0}}))
    assert [known.log_z for known in uai.known_models(folder, tmp_path / "other.json")] == [-3.0, None, None]


def test_rows_come_back_as_they_were(tmp_path):
    rows = [
        uai.Row(name="a", call="bound", time=1.0, lower=-math.inf, upper=2.5, gap=math.inf, stopped_by="time"),
        uai.Row(name="a", call="solve", time=1.0, threads=2, marginals_by="exact", largest=1e-5, fault="CRASH, so"),
    ]
    path = tmp_path / "table.csv"
    assert uai.read_rows(path) == []
    uai.write_rows(path, rows[:1])
    uai.write_rows(path, rows[1:], "a")
    assert uai.read_rows(path) == rows
    whole = path.read_text()
    path.write_text(whole + "a,bound,10.0,,3")  # the process was ended in the midst of a line
    assert uai.read_rows(path) == rows
    path.write_text(whole.replace("lower", "least"))
    with pytest.raises(SystemExit, match="expected the columns name, call"):
        uai.read_rows(path)


def test_rows_that_are_there_are_not_run_again(folder, tmp_path, monkeypatch, capsys):
    asked = []

    def answer(script, option, text, seconds):
        call, max_table, _, paths = json.loads(text)
        asked.append((call, max_table, Path(paths[0]).name))
        if paths[0].endswith("plain.uai"):
            raise RuntimeError("measure failed (-9):\n")
        return {"lower": -3.0, "upper": -2.4, "estimate": -2.6, "seconds": 1.0, "megabytes": 1.0}

    monkeypatch.setattr(uai, "in_fresh_process", answer)
    order = [str(folder), "--out", str(tmp_path / "table.csv"), "--calls", "bound", "--times"]
    uai.table(uai._parser().parse_args([*order, "1"]))
    assert asked == [("bound", 1.0, name) for name in ("all.uai", "packed.uai.gz", "plain.uai")]
    found = {claim.what: claim.measured for claim in uai.table(uai._parser().parse_args([*order, "1,2"]))}
    assert len(asked) == 6 and asked[3][1] == 2.0
    assert len(uai.read_rows(tmp_path / "table.csv")) == 6
    assert found["uai: brackets that exclude the known log Z"] == 2  # of "packed", at either time
    assert found["uai: calls that broke or did not end"] == 2
    assert found["uai: bound exact at 1 s, of 3"] == 0
    assert "excludes: packed (bound, 1 s), packed (bound, 2 s)" in capsys.readouterr().out


def test_what_follows_from_a_row():
    row = uai.judged(uai.Row(name="a", call="bound", time=1.0, log_z=2.0, lower=1.0, upper=1.5, estimate=1.25))
    assert (row.gap, row.outside, row.error) == (0.5, 0.5, -0.75)
    assert row.excludes and not row.exact and row.verdict == "EXCLUDED"
    row = uai.judged(uai.Row(name="a", call="bound", time=1.0, log_z=2.0, lower=2.0, upper=2.0 + 1e-9, seconds=1.4))
    assert row.exact and not row.excludes and row.verdict == "exact, LATE"
    row = uai.judged(uai.Row(name="a", call="solve", time=1.0, lower=-math.inf, upper=math.inf, estimate=math.nan))
    assert (row.gap, row.outside, row.error, row.verdict) == (math.inf, None, None, "")
    row = uai.judged(uai.Row(name="a", call="bound", time=1.0, lower=-math.inf, upper=-math.inf, log_z=-math.inf))
    assert row.exact and not row.excludes
    assert uai.judged(uai.Row(name="a", call="bound", time=1.0, lower=0.0, upper=1.0, log_z=-math.inf)).excludes


def test_a_call_in_this_process(folder):
    every = uai.known_models(folder)[0]
    paths = [str(every.model), str(every.evidence), str(every.marginals)]
    truth = cz.exact(MODEL, evidence={0: 1})
    bracket, solution = uai.measure("bound", 1.0, 1, paths), uai.measure("solve", 1.0, 1, paths)
    for found in (bracket, solution):
        assert found["lower"] <= truth.upper and truth.lower <= found["upper"]
        assert found["seconds"] > 0
    assert (
        solution["marginals_by"] == "exact" and solution["largest"] < 1e-9 and solution["mean"] <= solution["largest"]
    )


def test_errors_of_marginals(tmp_path):
    write_mar([[0.5, 0.5], [0.2, 0.8]], tmp_path / "m.MAR")
    model = cz.Model([[0.0, 0.0], [0.0, 0.0]])
    found = uai.marginal_errors(cz.exact(model).marginals, tmp_path / "m.MAR")
    assert found == {"largest": pytest.approx(0.3), "mean": pytest.approx(0.15)}
    assert "other variables" in uai.marginal_errors(cz.exact(MODEL).marginals, tmp_path / "m.MAR")["fault"]
    assert uai.marginal_errors(cz.exact(model, marginals=False).marginals, tmp_path / "m.MAR") == {}


def test_a_value_is_as_good_as_its_digits():
    """log10 Z of six digits is right to half of the last; any other value to what it says."""
    for log10, last in ((-31.1776, 1e-4), (-116.58, 1e-3), (9.93394, 1e-5)):
        assert uai.value_error(log10 * math.log(10)) == pytest.approx(0.5 * last * math.log(10))
    assert uai.value_error(-71.788993753) == pytest.approx(uai.VALUE_DIGITS * 71.788993753)
    assert uai.value_error(0.0) == uai.VALUE_DIGITS
