"""Pictures of samples."""

import pytest
from drawn import MODEL, shown_texts

import clampz as cz


@pytest.mark.parametrize("options", [{}, {"method": "weighted", "max_table": 4}, {"method": "gibbs"}])
def test_samples_are_drawn(options):
    found = cz.sample(MODEL, 64, **options)
    ax = found.plot()
    assert len(ax.figure.axes) == 2 and len(ax.get_yticks()) == 16
    texts = shown_texts(ax.figure)
    assert ax.get_title("left").startswith("64 samples") and any("share of the samples" in text for text in texts)
    assert found.plot(ax) is ax


def test_no_samples_are_said():
    assert any("no samples" in text for text in shown_texts(cz.sample(MODEL, 5, time=0.0).plot().figure))
    one = cz.sample(cz.Model([[0.0]], names=["a name that is long enough to be cut"]), 5)
    assert any(text.startswith("a name …be cut = 0") for text in shown_texts(one.plot().figure))
