"""Who closed the gap, in checkpoints: it is gone on with as the trace is, and forged gains are refused."""

import numpy as np
import pytest
from random_models import frustrated

import clampz as cz
from clampz.bounding.checkpoints import file as checkpoint_file
from clampz.bounding.checkpoints.checkpoint import LINE, resumed
from clampz.bounding.checkpoints.schema import KINDS, SavedSearch
from clampz.bounding.options import BoundOptions

OPEN = {"gap": 0.0, "exact": False, "time": 60.0, "threads": 1, "max_table": 4}


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A bracket, and what it has left in a file."""
    path = tmp_path_factory.mktemp("gains") / "tree"
    bracket = cz.bound(frustrated(9), leaves=10, checkpoint=path, **OPEN)
    with path.open("rb") as file:
        saved = SavedSearch(*checkpoint_file.read(file, file.readline(), KINDS, 10**9))
    return bracket, saved, path


def test_they_are_gone_on_with(left, tmp_path):
    bracket, _, path = left
    own = tmp_path / "own"
    own.write_bytes(path.read_bytes())
    assert tuple(resumed(frustrated(9), BoundOptions(**OPEN), own).gains) == bracket.gains
    assert cz.bound(frustrated(9), time=0.0, checkpoint=own).gains == bracket.gains
    longer = cz.bound(frustrated(9), leaves=30, checkpoint=own, **OPEN)
    assert longer.gains[: len(bracket.gains)] == bracket.gains and len(longer.gains) > len(bracket.gains)
    for end in ("lower", "upper"):
        own_gains = [gain for gain in longer.gains if gain.end == end]
        assert own_gains[-1].after == getattr(longer, end)
        assert sum(gain.nats for gain in own_gains[1:]) == pytest.approx(abs(own_gains[0].after - own_gains[-1].after))
    assert (np.diff([gain.seconds for gain in longer.gains]) >= 0).all()


def test_none_at_all_are_fine(left, tmp_path):
    _, saved, _ = left
    none = {name: getattr(saved, name)[:0] for name in SavedSearch._fields if name.startswith("gain_")}
    path = tmp_path / "none"
    checkpoint_file.write(path, LINE, saved._replace(**none, strategies=saved.strategies[:0]), KINDS)
    found = cz.bound(frustrated(9), time=0.0, checkpoint=path)
    assert not found.gains and found.proven_by == "" and "by" not in repr(found).split("estimate")[0]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("gain_seconds", lambda old: old[:-1]),
        ("gain_seconds", lambda old: -old),
        ("gain_seconds", lambda old: old + np.nan),
        ("gain_seconds", lambda old: old[::-1]),
        ("gain_seconds", lambda old: old + 1e6),
        ("gain_strategy", lambda old: old + 100),
        ("gain_strategy", lambda old: old - 1),
        ("gain_end", lambda old: 1 - old),
        ("gain_end", lambda old: old + 2),
        ("gain_before", lambda old: old + np.nan),
        ("gain_after", lambda old: old * np.nan),
        ("gain_after", lambda old: np.where(old == old.max(), -1e9, old)),
        ("gain_after", lambda old: np.where(old == old.min(), 1e9, old)),
        ("strategies", lambda old: np.full_like(old, 255)),
        ("strategies", lambda old: np.full_like(old, 27)),
        ("strategies", lambda old: np.full(10_000, ord("a"), dtype=np.uint8)),
    ],
)
def test_forged_gains_are_refused(field, change, left, tmp_path):
    _, saved, _ = left
    path = tmp_path / "forged"
    forged = saved._replace(**{field: change(getattr(saved, field))})
    checkpoint_file.write(path, LINE, forged, KINDS)
    with pytest.raises(cz.errors.OptionError, match=r"checkpoint .*forged: expected .*; give another file, or"):
        cz.bound(frustrated(9), time=0.0, checkpoint=path)
