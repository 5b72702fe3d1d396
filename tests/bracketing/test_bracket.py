"""The result: a bracket and its picture."""

import clampz as cz
from random_models import frustrated


def test_the_picture():
    bracket = cz.bound(frustrated(3, 9), gap=0.1, exact=False, time=20)
    ax = bracket.plot()
    texts = [text.get_text() for text in ax.texts]
    assert (
        any(t.startswith("upper") for t in texts)
        and any(t.startswith("lower") for t in texts)
        and ax.get_xlabel() == "seconds"
    )
