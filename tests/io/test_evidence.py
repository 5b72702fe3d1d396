"""Evidence files of the UAI competitions, in both dialects."""

import gzip

import numpy as np
import pytest
from model_files import SPRINKLER

import clampz as cz
from clampz import io
from clampz.errors import EvidenceError, FormatError
from clampz.io import evidence as evidence_files
from clampz.model import conditioning

CLOSE = 1e-9


def read_with(folder, text):
    (folder / "model.evid").write_text(text)
    return io.read(folder / "model.uai", evidence=folder / "model.evid")


@pytest.mark.parametrize(
    "text", ["2 3 1 1 0", "2\n3 1\n1 0\n", "1\n2 3 1 1 0", "1 2 3 1 1 0\n", "# wet, no rain\n2 3 1  1 0"]
)
def test_both_dialects(folder, text):
    wet_without_rain = 0.6 * 0.8 * 0.5 * 0.9 + 0.4 * 0.3 * 0.1 * 0.9
    estimate = cz.exact(read_with(folder, text))
    assert estimate.log_z == pytest.approx(np.log(wet_without_rain), abs=CLOSE)
    assert estimate.marginals[3].tolist() == [0, 1] and estimate.marginals[1].tolist() == [1, 0]
    assert estimate.marginals[2] == pytest.approx([0, 1])
    assert estimate.marginals[0] == pytest.approx(
        [0.6 * 0.8 * 0.5 * 0.9 / wet_without_rain, 0.4 * 0.3 * 0.1 * 0.9 / wet_without_rain]
    )


@pytest.mark.parametrize("text", ["", " \n", "0", "0\n", "1\n0", "1 0\n", "# nothing\n"])
def test_no_evidence(folder, text):
    assert read_with(folder, text) == io.read(folder / "model.uai")


def test_evidence_by_mapping_and_compressed(folder):
    model = io.read(folder / "model.uai", evidence={3: 1})
    (folder / "e.gz").write_bytes(gzip.compress(b"1 3 1"))
    assert io.read(folder / "model.uai", evidence=folder / "e.gz") == model
    assert cz.exact(model).log_z == pytest.approx(
        np.log(sum(cz.exact(io.read(folder / "model.uai")).marginals[3][1:])), abs=CLOSE
    )


def test_two_sets_that_read_as_one_are_one(folder):
    """It could be two samples as well, of no variable and of one."""
    assert evidence_files.read(_file(folder, "2 0 1 3 1"), io.read(folder / "model.uai")) == {0: 1, 3: 1}


def _file(folder, text):
    (folder / "model.evid").write_text(text)
    return folder / "model.evid"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 4 0", r"line 1: expected a variable from 0 to 3, found 4"),
        ("2 0 1\n3 2", r"line 2: expected a state of variable 3 from 0 to 1, found 2"),
        ("2 3 1 3 0", r"line 1: expected one state of variable 3, found 1 and 0"),
        ("2 3 1", r"line 1: expected 2 variables with a state each, 4 numbers, found 2 to follow"),
        ("0 3 1", r"line 1: expected 0 variables with a state each, 0 numbers, found 2 to follow"),
        ("2\n1 3 1\n1 2 0", r"line 1: expected one sample of evidence, found 2"),
        ("1 3 -1", r"line 1: expected whole numbers, found -1"),
        ("1 3 0.5", r"line 1: expected whole numbers, found 0.5"),
        ("1 3 nan", r"line 1: expected whole numbers, found nan"),
        ("1 3 yes", r"line 1: expected numbers only, found 'yes'"),
        ("99999999999999 3 1", r"line 1: expected 99999999999999 variables with a state each"),
        (SPRINKLER, r"line 1: expected numbers only, found 'BAYES'"),
    ],
)
def test_evidence_that_is_none(folder, text, message):
    with pytest.raises(FormatError, match=r"model\.evid, " + message):
        read_with(folder, text)


def test_impossible_evidence(folder):
    with pytest.raises(EvidenceError, match=r"model\.evid: evidence \{1: 0, 2: 0, 3: 1\} is impossible"):
        read_with(folder, "3 1 0 2 0 3 1")
    with pytest.raises(EvidenceError, match="impossible: it leaves no state for variable 0"):
        conditioning.given(cz.Model([[0, 0], [0, 0]], {(0, 1): [[0, -np.inf], [0, -np.inf]]}), {1: 1})
    with pytest.raises(EvidenceError, match=r"unknown variable|no variable|variable"):
        io.read(folder / "model.uai", evidence={"rain": 1})


def test_labels_of_factor_graphs_name_their_evidence(tmp_path):
    (tmp_path / "model.fg").write_text("1 2 30 10 2 2 3 0 1 1 2 3 4")
    model = io.read(tmp_path / "model.fg", evidence=_file(tmp_path, "1 30 1"))
    assert model.names == ("10", "30")
    assert cz.exact(model).log_z == pytest.approx(np.log(6), abs=CLOSE)
    with pytest.raises(FormatError, match="expected a variable of the model, found 1"):
        io.read(tmp_path / "model.fg", evidence=_file(tmp_path, "1 1 1"))
