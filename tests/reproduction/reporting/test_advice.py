"""Advice: every number from the table, nothing without one; and LaTeX that prints what it says."""

import re

import pytest
from made_up_tables import Fiction, synthetic_rows, synthetic_table

from clampz.solving.clamps import PATIENT, QUICK
from reproduction.claims.check import CLAIMS
from reproduction.claims.verdicts import Verdict
from reproduction.families import EVERY, family_named
from reproduction.pictures.figures import FIGURES
from reproduction.reporting.advice import advice, as_markdown
from reproduction.reporting.latex import escaped, write_latex
from reproduction.settings import BY_LIMIT, FURTHER_FAMILIES, MINI_BUCKETS
from reproduction.table import COLUMNS, Table


def further_rows():
    """TRW halves its error with each clamp and doubles its time; mini-buckets are tighter from a second on."""
    for family in FURTHER_FAMILIES:
        common = ("paper", "further", family, 0)

        def row(method, selector, k, error, seconds, common=common):
            return (*common, method, selector, k, None, error, True, seconds, "")

        yield row("exact", "none", 0, 0.0, 0.1)
        for k in range(11):
            for method, sign in (("mf", -1), ("bethe", 1), ("trw", 1)):
                yield row(method, "maxW+TRE" if k else "none", k, sign * 8.0 / 2**k, 0.01 * 2**k)
        for power in range(2, 17, 2):
            yield row(MINI_BUCKETS, BY_LIMIT, power, 0.001 if power > 8 else 9.0, 0.001 * 2**power)


@pytest.fixture(scope="module")
def table():
    rows = [*synthetic_rows(EVERY, settings=("paper", "restarts", "parents", "weights", "branches", "ours"))]
    return Table.from_rows(list(COLUMNS), [*rows, *further_rows()])


def test_every_sentence_has_its_number(table):
    found = advice(table)
    assert list(found) == ["Which method", "Which settings", "Which selector", "How many clamps", "More labels"]
    for given in found.values():
        for do, because, _ in given:
            assert do.endswith(".") and re.search(r"\d", because), do
            assert "nan" not in because and "{" not in do + because
    text = as_markdown(found)
    assert text.count("\n- **") == sum(map(len, found.values())) and "## Which selector" in text


def test_numbers_are_those_of_the_table(table):
    (first, second) = advice(table)["How many clamps"][1:]
    assert family_named(FURTHER_FAMILIES[0]).title in first.do and family_named(FURTHER_FAMILIES[1]).title in second.do
    assert first.do.endswith("than TRW with 4 clamps.")
    assert "exact sum takes 0.1 s, TRW with 4 clamps 0.16 s" in first.because
    assert "tighter from 7 clamps on: off by 0.001, not 0.062 nats" in first.because  # 1.28 s, when 2^10 is done


def test_there_is_none_without_runs():
    assert advice(Table()) == {}
    assert set(advice(Fiction(families=[family_named("grid25[-6,6]")], num_runs=5).table())) <= {
        "Which method",
        "Which selector",
    }


def test_solve_does_what_is_advised(table):
    hurry = next(each for each in advice(table)["Which selector"] if "`solve` does so" in each.do)
    assert f"choose by {QUICK}, if not by {PATIENT}" in hurry.do


def test_latex_prints_what_it_is_given(tmp_path):
    assert escaped("50% of |W| ± 1 → x_1 & {y}") == r"50\% of $|$W$|$ $\pm$ 1 $\to$ x\_1 \& \{y\}"
    assert escaped("[-6,6], 4-regular") == "[$-$6,6], 4-regular"
    table = synthetic_table([family_named("grid81[-6,6]"), family_named("complete10[-6,6]")])
    checked = [(claim, Verdict("1", False, "", "MF")) for claim in CLAIMS]
    write_latex(table, checked, [FIGURES["errors-mixed-6"], FIGURES["lamp"]], tmp_path)
    claims, errors, figures = ((tmp_path / f"{name}.tex").read_text() for name in ("claims", "errors", "figures"))
    assert claims.count("holds for MF") == len(CLAIMS) and claims.count(r" \\") == len(CLAIMS) + 1
    rows = [line.split(" & ") for line in errors.splitlines() if line.endswith(r" \\")][1:]
    assert [row[:2] for row in rows] == [
        [*first] for first in (("K10, [$-$6,6]", "0"), ("", "5"), ("9x9 grid, [$-$6,6]", "0"), ("", "5"))
    ]
    mean = table.curve("complete10[-6,6]", "trw", "maxW+TRE")[:, 5].mean()
    assert rows[1][4].startswith(f"+{mean:.3f}$\\pm$")  # families without runs are left out
    assert (
        r"\includegraphics[width=\linewidth]{figures/errors-mixed-6.pdf}" in figures and r"\label{fig:lamp}" in figures
    )
