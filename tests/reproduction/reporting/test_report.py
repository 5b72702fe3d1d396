"""The report: one page that needs nothing but itself, and says what the table says."""

import base64
import json
import re
import subprocess
import sys

import pytest
from made_up_tables import Fiction
from reading_pages import Page

from reproduction.claims.check import CLAIMS
from reproduction.claims.verdicts import Claim, Verdict, word_for
from reproduction.families import EVERY, FAMILIES, family_named
from reproduction.pictures.figures import FIGURES, figures_named
from reproduction.reporting import page as pages
from reproduction.reporting import report
from reproduction.reporting.advice import Advice
from reproduction.reporting.page import command_for, make_page, size_of
from reproduction.reporting.report import write_report
from reproduction.table import Table

PNG = b"\x89PNG\r\n\x1a\n"


NAMES = ["lamp", "complete-main", "histogram", "optimal"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    chosen = [family_named(name) for name in ("complete15[-12,12]", "complete10[-6,6]", "grid25[-6,6]", "er25[0,6]")]
    write_report(Fiction(families=chosen, num_runs=4).table(), path, figures_named(NAMES), latex=True)
    return path


@pytest.fixture(scope="module")
def page(folder):
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_pictures_are_in_the_folder_and_in_the_page(folder, page):
    assert sorted(path.name for path in (folder / "figures").iterdir()) == sorted(
        f"{name}{suffix}" for name in NAMES for suffix in (".png", ".pdf")
    )
    assert sorted(path.name for path in folder.iterdir()) == ["advice.md", "figures", "latex", "report.html"]
    assert len(page.images) == len(NAMES)
    for image, name in zip(page.images, NAMES, strict=True):
        data = base64.b64decode(image["src"].removeprefix("data:image/png;base64,"), validate=True)
        assert data == (folder / "figures" / f"{name}.png").read_bytes()
        assert data.startswith(PNG) and (int(image["width"]), int(image["height"])) == size_of(data) > (100, 100)
        assert FIGURES[name].title.replace("'", "’") in image["alt"]
        assert (folder / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_it_needs_nothing_but_itself_and_its_parts_are_what_they_are_called(page):
    page.check()


def test_every_claim_is_there_with_its_verdict(page):
    assert [f"claim-{claim.name}" for claim in CLAIMS] == [name for name in page.ids if name.startswith("claim-")]
    for claim in CLAIMS:
        assert claim.where.replace("'", "’") in page.text
    assert "does not hold" in page.text and "holds" in page.text and "cannot tell" in page.text
    against = page.text.split("Where we disagree, and why")[1].split("The figures")[0]
    assert "The printed equality does not hold" in against


def test_what_was_run_is_said(page):
    assert "Errors: 4 runs of each of 4 families" in page.text
    assert "The paper made 100 runs" in page.text
    assert "Values that did not converge" not in page.text and "1e-07 (MF)" in page.text
    assert f"{len(FIGURES) - len(NAMES)} other figures were not asked for" in page.text


def test_figures_without_runs_are_named(tmp_path):
    write_report(Table(), tmp_path, figures_named(["lamp", "success"]))
    found = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert [path.name for path in sorted((tmp_path / "figures").iterdir())] == ["lamp.pdf", "lamp.png"]
    assert "Not drawn, for want of runs: Agreement with pseudo-greedy" in found.text
    assert "only the small examples were computed" in found.text


def test_every_figure_is_seen_by_a_claim():
    of_paper = {name for name, figure in FIGURES.items() if figure.group != "beyond"}
    assert of_paper <= {name for claim in CLAIMS for name in claim.figures}


def test_names_between_backticks_are_code():
    assert pages.with_code("as `clamp` does, 1 < 2") == "as <code>clamp</code> does, 1 &lt; 2"


def test_everything_is_escaped():
    hostile = '<script>alert("x")</script> & \'</td>'
    claim = Claim("theorem-1", hostile, hostile, lambda m: Verdict(hostile, False, hostile), ("lamp",))
    others = [(other, Verdict("1", True)) for other in CLAIMS if other.name != "theorem-1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "GROUPS", {hostile: (claim, *(other for other, _ in others))})
        text = make_page(
            Table(),
            FAMILIES,
            [(claim, Verdict(hostile, False, hostile)), *others],
            [],
            {hostile: [Advice(hostile, hostile, hostile)]},
            [FIGURES["lamp"]],
            {"lamp": PNG + bytes(30)},
        )
    found = Page(text)
    assert "script" not in [tag for tag, _ in found.tags]
    assert found.text.count('alert("x")') >= 6


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")

    def full(figure, partial):
        partial.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "save", full)
    with pytest.raises(OSError, match="No space"):
        write_report(Table(), tmp_path, figures_named(["lamp"]))
    assert path.read_text() == "before"
    assert list((tmp_path / "figures").iterdir()) == []


def test_words():
    assert [word_for(Verdict("1", holds))[0] for holds in (True, False, None)] == [
        "holds",
        "does not hold",
        "cannot tell",
    ]
    assert word_for(Verdict("–", None, "Not in this table: times."))[0] == "not run"
    assert word_for(Verdict("1", False, "", "MF"))[0] == "holds for MF"


def test_the_command_makes_the_same_table():
    every = list(FIGURES.values())
    small = {"num_runs": 1, "experiments": ["errors"]}
    assert command_for(Fiction(families=EVERY, **small).table(), every) == "python -m reproduction --runs 1"
    grids = [f for f in FAMILIES if f.graph == "grid"]
    some = Fiction(families=[*grids, family_named("complete10[-6,6]")], **small).table()
    assert (
        command_for(some, [FIGURES["success"]])
        == "python -m reproduction --figure success --family grid --family 'complete10[-6,6]' --runs 1"
    )


def test_pictures_are_not_imported_with_the_package():
    code = "import sys, json, clampz, reproduction.claims.check, reproduction.reporting.report; "
    code += "print(json.dumps([name in sys.modules for name in ('matplotlib', 'PIL')]))"
    assert json.loads(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    ) == [False, False]


def test_every_figure_has_its_place():
    table = Fiction(num_runs=2, experiments=["errors"]).table()
    checked = [(claim, Verdict("1", True)) for claim in CLAIMS]
    found = Page(
        make_page(table, FAMILIES, checked, [], {}, list(FIGURES.values()), dict.fromkeys(FIGURES, PNG + bytes(30)))
    )
    assert [name for name in found.ids if name.startswith("figure-")] == [f"figure-{name}" for name in FIGURES]
    shown = {name for claim in CLAIMS for name in claim.figures}
    assert len(found.images) == len(FIGURES) and found.text.count("What we see") == len(shown & FIGURES.keys())
    # the numbers behind the figures of errors: K15, [0,6] in one of the paper's and one of the appendix's
    row = re.findall(
        r"K15, \[0,6\] ([−+0-9.]+) → ([−+0-9.]+) ([−+0-9.]+) → ([−+0-9.]+) ([−+0-9.]+) → ([−+0-9.]+)", found.text
    )
    errors = [
        table.curve("complete15[0,6]", method, "maxW+TRE")[:, [0, 5]].mean(axis=0) for method in ("mf", "bethe", "trw")
    ]
    assert row == [tuple(f"{value:+.2f}".replace("-", "−") for pair in errors for value in pair)] * 2
