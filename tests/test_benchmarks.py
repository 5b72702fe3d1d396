"""What all benchmarks share: claims that can fail, the worst of several models by name, and one signature."""

import ast
import math
from pathlib import Path

import pytest

import clampz as cz
import run
import timing
import walks

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


def test_a_walk_counts_a_hop_once_and_changes_of_package_beside_kernels():
    call, step, other, kernel = ("a/x.py", "f"), ("a/y.py", "g"), ("b/z.py", "h"), ("_kernels/k.py", "k")
    found = walks.Walk({(call, step, kernel), (call, step, other, kernel), (call, step, other)})
    assert (len(found.hops), found.hops_into_kernels, len(found.functions), found.package_changes) == (4, 2, 4, 1)
    assert (found.files, found.deepest) == ({"a/x.py", "a/y.py", "b/z.py", "_kernels/k.py"}, 3)


def test_a_function_inside_another_is_a_part_of_it():
    assert walks.in_turn([("a.py", "f"), ("a.py", "f"), ("b.py", "g"), ("a.py", "f")]) == (
        ("a.py", "f"),
        ("b.py", "g"),
        ("a.py", "f"),
    )


def test_chains_lead_from_the_public_call_to_kernels_and_other_methods_and_are_the_same_again():
    model = cz.generators.cycle(5, rng=0)
    methods = set(walks.codes_of(cz.trw))
    assert methods
    found = []
    for _ in range(2):
        hook = walks.Hook(methods)
        with walks.hooked(hook):
            cz.clamp(model, "trw", k=1, select="maxW", threads=1)
        found.append(walks.Walk(hook.chains))
    assert found[0] == found[1]
    assert {chain[-1] for chain in found[0].chains} >= {("approximations/trw.py", "trw")}
    assert all(len(chain) > 1 for chain in found[0].chains)
    assert not any(file.startswith("_kernels/") for chain in found[0].chains for file, _ in chain[:-1])


def test_work_of_a_thread_is_called_by_the_function_that_hands_it_over():
    model = cz.generators.cycle(5, rng=0)
    hook = walks.Hook(set())
    with walks.hooked(hook):
        cz.exact(model, evidence=[{0: 0}, {0: 1}, {1: 0}, {1: 1}], threads=2)
    assert len({chain[0] for chain in hook.chains}) == 1
