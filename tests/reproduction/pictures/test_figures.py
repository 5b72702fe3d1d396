"""The paper's figures: drawn from any table, full or empty, with nothing clipped or in the way of another."""

import itertools
from functools import cache

import numpy as np
import pytest
from made_up_tables import HELD, synthetic_table

from clampz.errors import OptionError
from reproduction.families import EVERY, FAMILIES
from reproduction.settings import HEURISTICS
from reproduction.table import Table

pytest.importorskip("matplotlib")
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from reproduction.pictures import examples, panels, pooled
from reproduction.pictures.figures import FIGURES, figures_named, save

# Points; at the width that figures are printed in.
SMALLEST_TEXT = 7.0
# Of text boxes that may touch, in pixels.
TOUCHING = 1.5
# Of the figures that differ in the range of weights alone, one each.
DIFFERENT = [name for name in FIGURES if FIGURES[name].group not in ("errors", "zoom", "times")] + [
    "errors-mixed-6",
    "zoom-mixed-12",
    "times-mixed-6",
]


@pytest.fixture(scope="module")
def full():
    return synthetic_table(EVERY, settings=("paper", "ours"))


@pytest.fixture(scope="module")
def drawn(full):
    """Figures of all families, each drawn once."""
    return cache(lambda name: FIGURES[name].draw(full))


@pytest.fixture(scope="module")
def few():
    """Three families of different kinds, at our settings too."""
    return synthetic_table([family for family in FAMILIES if family.name in HELD], settings=("paper", "ours"))


@pytest.fixture(scope="module", autouse=True)
def coarse():
    """The symmetric models at few weights: what they are is tested elsewhere."""
    patch = pytest.MonkeyPatch()
    patch.setattr(examples, "WEIGHTS", (-4.0, 0.0, 4.0))
    yield
    patch.undo()
    examples.errors.cache_clear()


def shown_texts(figure):
    """Every text that is drawn, with its box in pixels; labels of ticks beyond the limits are not."""
    figure.draw_without_rendering()
    hidden = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            hidden |= {
                label
                for tick in ticks
                if not (ax.axison and low <= tick.get_loc() <= high)
                for label in (tick.label1, tick.label2)
            }
    texts = [
        text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible() and text not in hidden
    ]
    return {f"{text.get_text()} ({number})": text for number, text in enumerate(texts)}


def assert_legible(figure, smallest=0.0):
    texts = shown_texts(figure)
    assert texts and min(text.get_fontsize() for text in texts.values()) >= smallest
    boxes = {name: text.get_window_extent() for name, text in texts.items()}
    for name, box in boxes.items():
        assert figure.bbox.x0 - 1 <= box.x0 and box.x1 <= figure.bbox.x1 + 1, f"{name} is clipped"
        assert figure.bbox.y0 - 1 <= box.y0 and box.y1 <= figure.bbox.y1 + 1, f"{name} is clipped"
    inner = {name: box.padded(-TOUCHING).extents for name, box in boxes.items()}
    for (a, (x0, y0, x1, y1)), (b, (u0, v0, u1, v1)) in itertools.combinations(inner.items(), 2):
        assert x1 <= u0 or u1 <= x0 or y1 <= v0 or v1 <= y0, f"{a} and {b} overlap"


def panels_of(figure):
    return [ax for ax in figure.axes if ax.axison]


# -- the figures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [name if name == "errors-main" else pytest.param(name, marks=pytest.mark.large) for name in DIFFERENT]
)
def test_figures_of_all_families_are_legible(drawn, name):
    figure = drawn(name)
    assert_legible(figure, SMALLEST_TEXT if FIGURES[name].experiments else 0.0)
    assert figure.get_size_inches()[0] <= panels.PAGE + 1e-9
    if FIGURES[name].experiments:
        assert len(figure.legends) + sum(ax.get_legend() is not None for ax in figure.axes) == 1


@pytest.mark.parametrize("name", ["errors-main", "complete-main", "errors-mixed-6", "success", "optimal"])
def test_figures_of_a_few_families_are_legible(few, name):
    assert_legible(FIGURES[name].draw(few))


@pytest.mark.parametrize("name", [name for name in DIFFERENT if FIGURES[name].experiments])
def test_a_figure_without_runs_says_so(name):
    figure = FIGURES[name].draw(Table())
    assert any(text.get_text() == "no runs" for text in figure.texts)
    assert_legible(figure)


@pytest.mark.parametrize("name", ["zoom-mixed-12", "times-mixed-6", "histogram", "success", "optimal"])
def test_one_run_is_enough(name):
    family = FIGURES[name].families[0]
    figure = FIGURES[name].draw(synthetic_table([family], runs=1))
    assert panels_of(figure)
    assert_legible(figure)


@pytest.mark.parametrize(
    ("name", "num"),
    [("errors-mixed-6", 11), ("zoom-mixed-12", 11), ("times-mixed-6", 11), ("errors-main", 12), ("complete-main", 4)],
)
def test_every_family_has_its_panel(drawn, name, num):
    assert len(panels_of(drawn(name))) == num


def test_panels_without_runs_are_left_out_or_say_so(few):
    figure = FIGURES["errors-main"].draw(few)  # er25[0,6] and grid49[-6,6]
    assert len(panels_of(figure)) == 4
    assert sum(text.get_text() == "no runs" for ax in figure.axes for text in ax.texts) == 2


def test_our_settings_are_lines_of_their_own(few, drawn):
    def labels(figure):
        legend = next(iter([*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]))
        return {text.get_text() for text in legend.get_texts()}

    chosen = {"best heuristic", "worst heuristic", "maxW", "maxW+TRE", "pseudo-greedy", "greedy"}
    assert chosen <= labels(drawn("errors-mixed-6")) and "all of ours" not in labels(drawn("errors-mixed-6"))
    assert {"all of ours", "the paper’s settings"} <= labels(FIGURES["ours"].draw(few))
    assert not chosen & labels(FIGURES["ours"].draw(few))


def test_a_panel_draws_the_means(few):
    from matplotlib.figure import Figure

    family = next(family for family in FAMILIES if family.name == "grid49[-6,6]")
    ax = Figure().add_subplot()
    assert {"trw", "bethe", "mf", "greedy"} <= panels.draw_errors(ax, few, family)
    drawn = [line.get_ydata() for line in ax.lines if line.get_color() == panels.COLOURS["bethe"]]
    for selector in ("maxW", "greedy"):
        expected = np.abs(few.curve(family.name, "bethe", selector)).mean(axis=0)
        assert any(len(line) == len(expected) and np.allclose(line, expected) for line in drawn)
    assert (few.curve(family.name, "bethe", "greedy").shape, ax.get_title("right")) == ((3, 4), "3 runs")


def test_zooming_shows_all_of_bethe_and_not_all_of_trw(full, drawn):
    far, near = (
        panels_of(figure)[0].get_ylim() for figure in (FIGURES["errors-mixed-12"].draw(full), drawn("zoom-mixed-12"))
    )
    family = "grid81[-12,12]"
    lines = [full.shown(family, "bethe", selector).mean(axis=0) for selector in ("best", "worst", "maxW")]
    assert near[0] < min(line.min() for line in lines) and max(line.max() for line in lines) < near[1]
    assert near[1] - near[0] < 0.5 * (far[1] - far[0])


def test_methods_differ_in_lightness_and_selectors_in_line_or_marker():
    lightness = sorted(np.dot(to_rgb(colour), [0.299, 0.587, 0.114]) for colour in panels.COLOURS.values())
    assert np.diff(lightness).min() > 0.15
    for lines in (panels.LINES, panels.OWN_LINES):
        assert len(
            {
                (str(line.style["linestyle"]), line.style.get("marker"), line.style.get("markerfacecolor"))
                for line in lines
            }
        ) == len(lines)


def test_agreement_counts_every_heuristic():
    names = ["family", "run", "method", "selector", "clamps", "agree"]
    rows = [
        ("grid25[0,2]", run, "trw", "pseudo-greedy", 1, agree)
        for run, agree in enumerate(("maxW,maxW+TRE", "maxW", "", "maxW+TRE"))
    ]
    shares, num = pooled.agreement(Table.from_rows(names, rows))
    assert num.tolist() == [4]
    assert {name: share for name, share in zip(HEURISTICS, shares[:, 0], strict=True) if share} == {
        "maxW": 0.5,
        "maxW+TRE": 0.5,
    }


def test_means_leave_out_what_is_missing():
    mean, error, num = panels.mean_over_runs(np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]]))
    np.testing.assert_allclose(mean, [2.0, 5.0, np.nan])
    np.testing.assert_allclose(error, [1.0, np.nan, np.nan])
    assert num.tolist() == [2, 1, 0]


def test_figures_by_name():
    assert [figure.name for figure in figures_named([])] == list(FIGURES)
    assert [figure.name for figure in figures_named(["success", "lamp"])] == ["lamp", "success"]
    assert {figure.group for figure in figures_named(["errors", "times"])} == {"errors", "times"}
    assert all(
        name == figure.name and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        for name, figure in FIGURES.items()
    )
    with pytest.raises(OptionError, match=r"did you mean 'success'.*histogram"):
        figures_named(["sucess"])


def test_files_are_reproducible_and_small(tmp_path, few):
    for suffix in ("png", "pdf"):
        for name in ("a", "b"):
            save(FIGURES["errors-mixed-6"].draw(few), tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
    assert (tmp_path / "a.png").stat().st_size < 50_000  # a panel and the legend
