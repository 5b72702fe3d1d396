"""The report of a solved model: one page that needs nothing but itself, and says what was found."""

import base64
import math
import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from reading_pages import Page

import clampz as cz
from clampz.bounding.bracket import Point
from clampz.portfolio.problem import Gain, Gains
from clampz.reporting import embedded_figures, make_page

pytest.importorskip("matplotlib")

MODEL = cz.generators.grid(4, 4, toroidal=False, rng=0)
DIFFER = np.where(np.eye(2) > 0, -np.inf, 0.0)


def bracketed() -> cz.results.Solution:
    """A solution with a bracket that has not closed, and an estimate by sampling."""
    found = cz.solve(MODEL)
    trace = (Point(0.1, -math.inf, 60.0, 1), Point(0.5, 20.0, 40.0, 1), Point(2.0, 24.0, 26.0, 3))
    bracket = replace(cz.bound(MODEL), trace=trace, lower=24.0, upper=26.0, estimate=25.0, standard_error=0.01)
    errors = replace(found, marginal_errors=found.marginals)
    return replace(errors, bound=None, log_z=25.0, lower=24.0, upper=26.0, bracket=replace(bracket, seconds=2.0))


SOLUTIONS = {
    "exact": lambda: cz.solve(MODEL),
    "log Z alone": lambda: cz.solve(MODEL, marginals=False),
    "bracketed": bracketed,
    "clamped": lambda: cz.solve(MODEL, method="trw", k=2),
    "one method": lambda: cz.solve(MODEL, method="bethe"),
    "impossible": lambda: cz.solve(cz.Model(np.zeros((3, 2)), {(0, 1): DIFFER, (1, 2): DIFFER, (0, 2): DIFFER})),
    "no variables": lambda: cz.solve(cz.Model([])),
    "factors": lambda: cz.solve(cz.Model.from_factors([2, 3, 2], [((0, 1, 2), np.arange(12.0).reshape(2, 3, 2))])),
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_it_needs_nothing_but_itself_and_its_parts_are_what_they_are_called(name):
    page = Page(make_page(SOLUTIONS[name]()))
    page.check()
    for image in page.images:
        kind, _, data = image["src"].removeprefix("data:image/").partition(";base64,")
        assert kind == "svg+xml"
        ElementTree.fromstring(base64.b64decode(data))
    assert len(page.images) == {"bracketed": 2, "clamped": 2, "no variables": 0}.get(name, 1)


def test_pictures_are_as_wide_as_the_page_at_most_and_nothing_around_them_scrolls():
    page = make_page(bracketed())
    assert [parent for parent, _ in re.findall(r"(<[^<>]*>)\s*(<img )", page)] == ['<figure class="picture">'] * 2
    assert re.findall(r"\.picture img \{[^}]*max-width: (\w+%?)", page) == ["100%"]


def test_what_was_found_and_what_it_is_worth():
    page = Page(make_page(bracketed(), "log Z of a grid"))
    assert page.text.split("Result")[0].strip().startswith("log Z of a grid")
    for words in (
        "log Z, estimate by sampling 25.000 ± 0.010",
        "lower bound, proven 24.000000",
        "upper bound, proven 26.000000",
        "gap between them, nats 2",
        "95% interval, statistical [24.000, 26.000]",
        "24.000000 <= log Z <= 26.000000",
        "1 leaf of the tree of clamps, 2 s, stopped by exact",
    ):
        assert words in page.text
    exact = Page(make_page(cz.solve(MODEL))).text
    assert f"log Z, exact {cz.exact(MODEL).log_z:.6f}" in exact
    assert "The model is narrow enough to be solved exactly" in exact
    assert "How the bounds closed" not in exact
    assert "Z = 0: no configuration is possible" in Page(make_page(SOLUTIONS["impossible"]())).text


def test_every_moment_is_listed_or_said_to_be_left_out():
    found = bracketed()
    page = Page(make_page(found))
    assert "0.500 20.000000 40.000000 20 1" in page.text
    trace = tuple(Point(0.1 * k, 20.0, 40.0 - 0.1 * k, 1) for k in range(100))
    many = Page(make_page(replace(found, bracket=replace(found.bracket, trace=trace))))
    assert "40 of 100 moments." in many.text
    assert "0.000 20.000000 40.000000" in many.text and "9.900 20.000000 30.100000" in many.text


def test_who_closed_the_gap_is_a_table():
    found = bracketed()
    gains = Gains(
        [
            *(Gain(0.1, "trivial bounds", "upper", math.inf, 60.0), Gain(0.5, "TRW", "upper", 60.0, 40.0)),
            *(Gain(0.5, "<mine>", "lower", -math.inf, 20.0), Gain(2.0, "<mine>", "lower", 20.0, 24.0)),
        ]
    )
    page = Page(make_page(replace(found, bracket=replace(found.bracket, gains=gains))))
    page.check()
    said = "Who closed the gap Nats of the lower end Nats of the upper end trivial bounds first TRW 20 <mine> 4"
    assert said in " ".join(page.text.split())
    silent = Page(make_page(replace(found, bracket=replace(found.bracket, gains=Gains()))))
    assert "Who closed the gap" not in silent.text


def rows_of(page: Page) -> list[str]:
    """Variables in the order of the table of marginals."""
    body = page.source.split('id="marginals"')[1]
    return re.findall(r'<th scope="row">([^<]*)</th>', body)


def test_marginals_are_listed_with_the_least_certain_first():
    theta = np.linspace(-3.0, 3.0, 300)
    model = cz.Model.from_binary(theta, np.zeros(1), [(0, 299)], names=[f"v{i}" for i in range(300)])
    solution = cz.solve(model)
    page = Page(make_page(solution))
    expected = np.argsort([-abs(p[1] - 0.5) for p in solution.marginals])[::-1][:200]
    found = rows_of(page)
    assert len(found) == 200
    assert set(found) == {f"v{i}" for i in expected}
    certainty = [max(solution.marginal(name)) for name in found]
    assert (np.diff(certainty) > -1e-12).all()
    assert "The 200 of 300 variables that are least certain" in page.text
    assert "175 more" in page.text


def test_states_have_their_names_and_many_are_summed_up():
    rng = np.random.default_rng(0)
    states = [f"colour {a}" for a in range(9)]
    model = cz.Model([rng.normal(size=9)], names=["car"], state_names=[states])
    (p,) = cz.exact(model).marginals
    order = np.argsort(-p)
    text = Page(make_page(cz.solve(model))).text
    assert f"car colour {order[0]} {p[order[0]]:.4f} colour {order[1]}: {p[order[1]]:.4f}" in text
    assert f"5 more: {p[order[4:]].sum():.4f}" in text


def test_everything_is_escaped():
    hostile = '<script>alert("x")</script> & \'</td>'
    model = cz.Model([[0.0, 1.0]], names=[hostile], state_names=[[hostile, "b"]])
    page = Page(make_page(cz.solve(model), hostile))
    page.check()
    assert page.text.count('alert("x")') >= 3


def test_of_many_things_the_picture_is_made_of_points(monkeypatch):
    monkeypatch.setattr(embedded_figures, "MOST_DRAWN", 10)
    (image,) = Page(make_page(cz.solve(MODEL))).images
    assert base64.b64decode(image["src"].removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")


def test_the_same_solution_makes_the_same_page():
    solution = bracketed()
    assert make_page(solution) == make_page(solution)


def test_it_is_written_whole_and_no_figure_is_left(tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    plt.close("all")
    solution, path = cz.solve(MODEL), tmp_path / "page.html"
    assert solution.report(str(path), title="A grid") == path
    Page(path.read_text(encoding="utf-8")).check()
    assert not plt.get_fignums()
    path.write_text("before")
    monkeypatch.setattr(type(path), "write_bytes", lambda self, *_, **__: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(cz.errors.FormatError, match=r"page.html: cannot be written: full"):
        solution.report(path)
    assert path.read_bytes() == b"before"
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(cz.errors.FormatError, match=r"nowhere.page.html: no such directory to write it to"):
        cz.solve(MODEL).report(tmp_path / "nowhere" / "page.html")


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    solution = cz.solve(MODEL)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(cz.errors.MissingLibraryError, match="matplotlib is not installed: pip install matplotlib"):
        solution.report(tmp_path / "page.html")
    assert not list(tmp_path.iterdir())
