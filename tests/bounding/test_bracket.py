"""The result: a bracket and its picture."""

import clampz as cz


def test_the_picture():
    bracket = cz.bound(cz.generators.complete(20, weights=(-8, 8), rng=0), exact=False, leaves=2, max_table=16, time=20)
    assert bracket.gap > 0.1
    ax = bracket.plot()
    texts = [text.get_text() for text in ax.texts]
    assert (
        any(t.startswith("upper") for t in texts)
        and any(t.startswith("lower") for t in texts)
        and "seconds" in [each.get_xlabel() for each in ax.figure.axes]
    )
