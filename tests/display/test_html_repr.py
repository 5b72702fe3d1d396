"""Results as notebooks show them: text is escaped, tables are short, pictures are where they should be, and nothing is
computed for them."""

import re
import xml.etree.ElementTree as ET
from functools import cached_property

import numpy as np
import pytest

import clampz as cz
from clampz.display.html_repr import ACCENT, HtmlCard, and_more, as_html, between, shares

NAMED = cz.Model(
    [[0.0, -1.0], [0.0, 0.0], [0.0, 0.0, 0.0]],
    {(0, 1): [[0, 1], [0, -3]], (0, 2): [[1, 0, 0], [-2, 0, 2]]},
    names=["rain", "<b>sprinkler</b>", "grass & co"],
    state_names=[["no", "yes"], ["off", "on"], ["dry", "<damp>", "wet"]],
)
GRID = cz.generators.grid(4, 4, weights=(-6, 6), rng=0)
RESULTS = {
    "Model": lambda: NAMED,
    "Estimate": lambda: cz.trw(NAMED, max_iter=1),
    "Estimates": lambda: cz.exact(NAMED, beta=np.linspace(0.0, 1.0, 20)),
    "Clamped": lambda: cz.clamp(NAMED, "mf", variables=[0, 1]),
    "Bracket": lambda: cz.bound(NAMED),
    "MarginalBounds": lambda: cz.bound_marginals(GRID, exact=False, time=0.2),
    "Solution": lambda: cz.solve(NAMED),
    "Samples": lambda: cz.sample(NAMED, 20, method="weighted"),
    "Mode": lambda: cz.mode(NAMED, num_best=3),
    "Probability": lambda: cz.probability(NAMED, {"rain": "yes"}),
    "LogRatio": lambda: cz.log_ratio(NAMED.condition({"rain": "yes"}), NAMED),
    "Sweep": lambda: cz.sweep(NAMED, [0.0, 0.5]),
    "Fit": lambda: cz.fit(NAMED, [[0, 0, 1], [1, 0, 2], [0, 1, 0]], l2=0.1),
    "Simplified": lambda: cz.simplify(NAMED, keep=["rain"]),
    "Scores": lambda: cz.scores(NAMED),
}


def shown(result):
    """The card, which is well-formed, and its text without tags."""
    html = result._repr_html_()
    tree = ET.fromstring(html)
    return html, " ".join(text.strip() for text in tree.itertext() if text.strip())


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_has_a_card_that_is_short_and_escaped(kind):
    result = RESULTS[kind]()
    assert type(result).__name__ == kind
    html, _ = shown(result)
    assert len(html) < 8_000
    assert "<b>sprinkler" not in html and "<damp>" not in html
    assert not re.search(r"color\s*:|background", html) and set(re.findall(r"#\w{6}", html)) <= {ACCENT}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Model", ["3, of 2 to 3 states", "<b>sprinkler</b>", "dry, <damp>, wet", "0, -1"]),
        ("Estimate", ["Estimate: TRW", "(upper bound)", "log Z <=", "1 sweep, converged", "<damp> 0."]),
        ("Estimates", ["20, 20 converged", "0.0526316", "… and 12 more lanes"]),
        ("Clamped", ["Clamped: mean field", "(lower bound)", "2 variables, by given", "rain"]),
        ("Bracket", ["lower 3.0", "gap", "stopped by exact"]),
        ("MarginalBounds", ["16", "… and 24 more intervals"]),
        ("Solution", ["(exact)", "narrow enough", "marginals exact", "no 0.8420, yes 0.1580"]),
        ("Samples", ["20 samples, weighted", "independent samples", "log weight", "… and 12 more samples"]),
        ("Mode", ["Best 3 configurations", "2.000000 <= largest score <= 2.000000", "optimal yes"]),
        ("Probability", ["P(rain = yes)", "<= P <=", "stopped by exact"]),
        ("LogRatio", ["log Z_a - log Z_b", "estimate"]),
        ("Sweep", ["2 inverse temperatures", "heat capacity", "exact"]),
        ("Fit", ["Fit: exact", "nats per row", "rows 3", "converged"]),
        ("Simplified", ["3 → ", "summed out", "log Z, up to"]),
        ("Scores", ["maxW0", "rain (9)"]),
    ],
)
def test_cards_say_what_results_are(kind, words):
    _, text = shown(RESULTS[kind]())
    for part in words:
        assert part in text, text


def test_large_models_are_shown_by_their_first_rows():
    model = cz.generators.grid(300, 300, rng=0)
    html, text = shown(model)
    assert "… and 89,992 more variables" in text and len(html) < 4_000
    assert not {"pair_form", "binary", "topology"} & set(vars(model))
    wide = cz.sample(cz.generators.cycle(1000, rng=0), 2)
    assert "… and 992 more variables" in shown(wide)[1] and len(shown(wide)[0]) < 4_000
    states = cz.Model([np.zeros(5000), np.zeros(2)])
    assert len(shown(states)[0]) < 4_000 and len(shown(cz.exact(states))[0]) < 4_000
    assert "… (5,000)" in shown(states)[1]


@pytest.mark.parametrize(
    "find",
    [
        lambda: cz.bethe(GRID, beta=1.0),
        lambda: cz.trw(GRID, evidence=[{}, {0: 1}]),
        lambda: cz.clamp(GRID, "bethe", k=1),
        lambda: cz.sample(GRID, 10),
        lambda: cz.sample(GRID, 10, method="gibbs"),
        lambda: cz.mode(GRID),
        lambda: cz.fit(GRID, np.zeros((2, 16), dtype=int), l2=0.1),
    ],
)
def test_nothing_is_computed_for_a_card(find):
    result = find()
    members = [what for base in type(result).__mro__ for what in vars(base).values()]
    assert any(isinstance(what, cached_property) for what in members)
    before = set(vars(result))
    shown(result)
    assert set(vars(result)) == before


def test_pictures_show_intervals_inside_others():
    assert "x='50.0' y='3' width='100.0'" in between((0.0, 4.0), (1.0, 3.0), width=200)
    assert "x1='75.0' y1='0' x2='75.0'" in between((0.0, 4.0), (1.0, 3.0), 1.5, width=200)
    assert "<title>a &lt; b</title>" in between((0.0, 1.0), (0.0, 0.0), words="a < b")
    assert between((0.0, np.inf), (0.0, 1.0)) == between((1.0, 1.0), (1.0, 1.0)) == shares([np.nan, 1.0]) == ""
    ET.fromstring(shares([0.25, 0.75]))


def test_what_is_left_out_is_counted():
    assert and_more(9, 8, "lane") == "… and 1 more lane"
    assert and_more(8, 8, "lane") == ""


def test_numbers_are_to_the_right_and_words_to_the_left():
    html = as_html(HtmlCard(title="t", columns=("name", "n"), rows=[("a", "1,000"), ("2", "-inf")]))
    assert "<td class='l'>a</td><td>1,000</td>" in html and "<td class='l'>2</td><td>-inf</td>" in html
    assert "<th class='l'>name</th><th>n</th>" in html
    html = as_html(
        HtmlCard(title="t", columns=("name", "n", "w"), rows=[("a", "first", "x"), ("b", "2", ""), ("c", "", "")])
    )
    assert "<td>first</td><td class='l'>x</td>" in html and "<td>2</td><td class='l'></td>" in html


def test_the_card_of_a_bracket_says_who_closed_the_gap():
    html, _ = shown(cz.bound(GRID, exact=False, leaves=3, max_table=4))
    assert "<th class='l'>who closed the gap</th><th>nats of the lower end</th>" in html
    assert "<td class='l'>trivial bounds</td><td>first</td><td>first</td>" in html and "mean field</td><td>" in html


def test_cards_of_next_to_nothing():
    for result in (cz.exact(GRID, time=0.0), cz.bound(cz.Model([[0.0]])), cz.exact(cz.Model([])), cz.Model([])):
        shown(result)
    nothing = cz.Model([[0.0, 0.0]] * 2, {(0, 1): np.full((2, 2), -np.inf)})
    for result in (cz.exact(nothing), cz.solve(nothing), cz.mode(nothing), cz.bound(nothing), cz.simplify(nothing)):
        shown(result)
