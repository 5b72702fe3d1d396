"""Files to read."""

import pytest
from model_files import SPRINKLER

import clampz as cz


@pytest.fixture
def read(request, tmp_path):
    """Write a text to a file and read it: model.fg for the tests of that format, else model.uai."""

    usual = "model.fg" if request.module.__name__.endswith("test_fg") else "model.uai"

    def read_text(text, name=usual):
        (tmp_path / name).write_text(text)
        return cz.read(tmp_path / name)

    return read_text


@pytest.fixture
def folder(tmp_path):
    """A folder with a Bayesian network in model.uai."""
    (tmp_path / "model.uai").write_text(SPRINKLER)
    return tmp_path
