"""What all benchmarks share: claims that can fail, the worst of several models by name, and one signature."""

import ast
import math
from pathlib import Path

import pytest

import run
import timing

FOLDER = Path(run.__file__).parent


def test_a_claim_without_a_target_has_no_verdict_and_others_can_miss_it():
    assert [timing.Claim("a", 2.0, *rest).verdict for rest in ((), ("<=", 2.0), ("<=", 1.9), (">=", 2.1))] == [
        "",
        "holds",
        "MISSED",
        "MISSED",
    ]


def test_the_worst_model_is_named():
    ratios = {"a": 2.0, "b": 0.5, "c": math.nan}
    assert timing.worst("slower", ratios, "<=", 1.0) == [timing.Claim("slower, worst of 2: a", 2.0, "<=", 1.0)]
    assert timing.worst("quicker", ratios, ">=", 1.0) == [timing.Claim("quicker, worst of 2: b", 0.5, ">=", 1.0)]
    assert timing.worst("nothing", {}, ">=", 1.0) == []


def test_what_is_missing_is_said():
    with pytest.raises(timing.MissingError, match="pip install a-package"):
        timing.peer("no_such_module_anywhere", "a-package")


def test_files_come_from_the_folder_that_is_named(tmp_path, monkeypatch):
    for name in ("b.uai", "a.uai.gz", "a.uai.evid", "a.txt"):
        (tmp_path / name).touch()
    monkeypatch.delenv(timing.UAI_FOLDER, raising=False)
    assert timing.uai_files() == []
    monkeypatch.setenv(timing.UAI_FOLDER, str(tmp_path))
    assert [path.name for path in timing.uai_files()] == ["a.uai.gz", "b.uai"]
    assert [path.name for path in timing.uai_files("b")] == ["b.uai"]


@pytest.mark.parametrize("name", run.ORDER)
def test_every_benchmark_is_called_alike(name):
    tree = ast.parse((FOLDER / f"{name}.py").read_bytes())
    (main,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")
    assert ast.unparse(main.args) == "quick: bool" and ast.unparse(main.returns) == "list[Claim]"
