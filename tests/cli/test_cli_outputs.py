"""Files and pictures that commands leave."""

import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from running import run

from clampz import choosing
from clampz.cli import exits, outputs


def test_a_picture_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    class Unwritable(Figure):
        def savefig(self, path: Path) -> None:
            path.write_text("half of it")
            raise OSError(28, "No space left on device")

    (tmp_path / "picture.png").write_text("old")
    with pytest.raises(exits.CommandError, match="No space left on device"):
        outputs.save_picture(Unwritable(), tmp_path / "picture.png")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_an_unwritable_folder_is_refused_before_computing(folder, capsys, monkeypatch):
    (folder / "closed").mkdir(mode=0o500)
    monkeypatch.setattr(choosing, "solve", lambda *args, **options: pytest.fail("computed"))
    assert run("solve", "grid.uai", "--out", "closed/r.json") == 2
    assert "no permission to write there" in capsys.readouterr().err
