"""Searches in files, gone on with later."""

import pytest

import clampz as cz
from random_models import frustrated


def test_a_checkpoint_goes_on(tmp_path):
    model, path = frustrated(9, 10), tmp_path / "tree"
    first = cz.bound(model, gap=0.0, exact=False, leaves=10, time=30, checkpoint=path)
    again = cz.bound(model, gap=0.0, exact=False, leaves=30, time=30, checkpoint=path)
    assert again.lower >= first.lower and again.upper <= first.upper and again.gap < first.gap
    assert again.trace[: len(first.trace)] == first.trace and again.lower <= cz.exact(model).log_z <= again.upper


def test_refused_checkpoints(tmp_path):
    path = tmp_path / "tree"
    cz.bound(frustrated(9), exact=False, leaves=3, checkpoint=path)
    with pytest.raises(cz.OptionError, match=r"checkpoint .*tree: expected one of this model"):
        cz.bound(frustrated(8), checkpoint=path)
    path.write_bytes(b"something else")
    with pytest.raises(cz.OptionError, match=r"expected a file that bound\(\) left"):
        cz.bound(frustrated(8), checkpoint=path)
    with pytest.raises(cz.OptionError, match=r"expected a folder that exists"):
        cz.bound(frustrated(8), checkpoint=tmp_path / "no" / "tree")
