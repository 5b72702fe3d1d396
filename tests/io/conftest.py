"""A fixture that reads text as a file."""

import pytest

import clampz as cz


@pytest.fixture
def read(request, tmp_path):
    """Write a text to a file and read it: model.fg for the tests of that format, else model.uai."""

    def read_text(text, name="model.fg" if request.module.__name__.endswith("test_fg") else "model.uai"):
        (tmp_path / name).write_text(text)
        return cz.read(tmp_path / name)

    return read_text
