"""Pictures of what `solve` found: whatever shows how it came about."""

import pytest

import clampz as cz

pytest.importorskip("matplotlib")
import drawn
from drawn import assert_legible


def words(found: cz.results.Solution) -> str:
    ax = found.plot()
    assert_legible(ax.figure)
    return " ".join(text.get_text() for text in ax.texts)


def test_what_is_exact_is_a_number():
    assert words(cz.solve(drawn.MODEL)).startswith(f"log Z = {cz.exact(drawn.MODEL).log_z:.9f} exact")


def test_a_bracket_is_drawn_over_time():
    found = cz.solve(cz.generators.complete(40, weights=(-6, 6), rng=0), time=0.5, marginals=False)
    assert found.bracket is not None
    ax = found.plot()
    assert ax.get_title(loc="left").startswith("certified bracket")


def test_clamps_are_drawn_one_by_one_and_a_method_alone_as_what_it_says():
    assert "maxW+TRE" in words(cz.solve(drawn.MODEL, method="bethe", k=2))
    assert "Bethe estimate" in words(cz.solve(drawn.MODEL, method="bethe"))
