"""Arguments that several commands take."""

import pytest

from clampz import cli
from clampz.cli.arguments import with_negative_values


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("500MB", 500_000_000), ("2GB", 2 * 10**9), ("1GiB", 2**30)])
@pytest.mark.parametrize("command", ["solve", "bound", "info", "uai"])
def test_memory_is_written_one_way_everywhere(command, text, size):
    places = ["model.uai", "-", "-", "PR"] if command == "uai" else ["model.uai"]
    assert cli.make_parser().parse_args([command, *places, "--memory", text]).memory == size


def test_negative_values_need_no_equals_sign():
    assert with_negative_values(["--weights", "-6,6", "--size", "3", "-o", "-6"]) == [
        "--weights=-6,6",
        "--size",
        "3",
        "-o",
        "-6",
    ]
    assert with_negative_values(["--weights=-6,6", "-1"]) == ["--weights=-6,6", "-1"]
    assert with_negative_values(["--json", "--out", "-.5", "--", "-5"]) == ["--json", "--out=-.5", "--", "-5"]
