"""Checkpoint files: what was written, or a refusal, whatever the bytes."""

import os

import numpy as np
import pytest

from clampz.bounding.checkpoints import file as checkpoint_file
from clampz.bounding.checkpoints.file import BYTES, FLOATS, INTEGERS, CorruptFileError

LINE = b"a test\n"
KINDS = [FLOATS, INTEGERS, BYTES, FLOATS]
ARRAYS = [np.array([1.5, -np.inf, np.nan]), np.array([3, -(2**62)]), np.array([0, 255], dtype=np.uint8), np.empty(0)]


def read(path, most_bytes=10**6):
    with path.open("rb") as file:
        return checkpoint_file.read(file, file.readline(), KINDS, most_bytes)


@pytest.fixture
def path(tmp_path):
    checkpoint_file.write(tmp_path / "checkpoint", LINE, ARRAYS, KINDS)
    return tmp_path / "checkpoint"


def test_what_was_written_is_read(path):
    for found, array, kind in zip(read(path), ARRAYS, KINDS, strict=True):
        assert found.dtype == kind and found.flags.writeable and np.array_equal(found, array, equal_nan=kind == FLOATS)


def test_arrays_are_made_what_the_schema_says(tmp_path):
    checkpoint_file.write(tmp_path / "x", LINE, [[1, 2], np.array([3], dtype=np.int32), [True], np.ones(4)[::2]], KINDS)
    assert [array.tolist() for array in read(tmp_path / "x")] == [[1.0, 2.0], [3], [1], [1.0, 1.0]]


def test_every_flipped_bit_is_seen(path):
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(CorruptFileError, match="damaged"):
            read(path)


def test_every_truncation_is_seen_and_every_addition(path):
    whole = path.read_bytes()
    for changed in [whole[:size] for size in range(len(whole))] + [whole + b"\0", whole + whole]:
        path.write_bytes(changed)
        with pytest.raises(CorruptFileError, match="damaged or incomplete"):
            read(path)


def test_garbage_is_seen(path):
    rng = np.random.default_rng(0)
    for size in rng.integers(0, 500, 300):
        path.write_bytes(LINE + rng.bytes(size))
        with pytest.raises(CorruptFileError, match="damaged"):
            read(path)


@pytest.mark.parametrize("length", [2**62, -1, 2**40])
def test_what_a_file_says_it_has_takes_no_memory(path, length):
    lengths = np.array([length, 0, 0, 0], dtype=INTEGERS)
    path.write_bytes(LINE + bytes(32) + lengths.tobytes() + bytes(64))
    with pytest.raises(CorruptFileError, match="as many bytes as it says it has"):
        read(path)


def test_more_than_is_allowed_is_not_read(path):
    """A sparse file of a terabyte, which takes no room on the disk."""
    header = LINE + bytes(32) + np.array([2**37, 0, 0, 0], dtype=INTEGERS).tobytes()
    path.write_bytes(header)
    os.truncate(path, len(header) + 2**40)
    with pytest.raises(CorruptFileError, match=r"expected at most 1,000,000 bytes, as memory= allows, found 1,099,5"):
        read(path)


def test_a_file_that_fails_on_the_way_leaves_the_old_one(path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(checkpoint_file, "_digest", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint_file.write(path, LINE, [array[:1] for array in ARRAYS], KINDS)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
