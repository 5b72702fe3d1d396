"""Options that calls take by name: what a type checker accepts is what there is, and nothing else."""

import importlib
import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

import clampz as cz
from clampz.generators import Drawing

KEYWORDS = {"Options": "OptionKeywords"}
SOURCE = Path(cz.__file__).parents[1]
ACCEPTED = """
import clampz as cz

model = cz.generators.grid(3, 3, theta=(0, 1), rng=0)
cz.bound(model, gap=0.1, time=1.0, memory="1GB", max_table=64, leaves=3, seed=1)
for bracket in cz.iter_bounds(model, evidence={0: 1}, criterion="upper"):
    lower: float = bracket.lower
cz.bound_marginals(model, [4], gap=0.1, threads=1)
cz.clamp(model, "trw", k=2, edge_weights="uniform", num_steps=3, max_iter=5)
one: cz.results.Estimate = cz.trw(model, edge_weights="optimized", tol=0.1, rng=1)
same: cz.results.Estimate = cz.mean_field(model, options=cz.options.MeanFieldOptions(num_starts=3))
lanes: cz.results.Estimates = cz.bethe(model, evidence=[{0: 0}, {0: 1}], num_starts=1, from_mean_field=False)
temperatures: cz.results.Estimates = cz.exact(model, beta=[0.5, 1.0], marginals=False, engine="planar")
batch: cz.results.Estimates = cz.mini_buckets(cz.branches(model, [0]), max_table=16, num_structures=2)
any_method: cz.results.Estimate = cz.methods()["trw"](model, num_trees=3)
cz.torch.log_z(None, None, model, "trw", num_trees=10)
"""
REFUSED = """
cz.bound(model, gapp=0.1)
cz.bound(model, gap="0.1")
cz.iter_bounds(model, limit=3)
cz.bound_marginals(model, leafs=3)
cz.clamp(model, "trw", k=2, edge_weight="uniform")
cz.trw(model, edge_weights="optimised")
cz.trw(model, max_table=16)
cz.mean_field(model, options=cz.options.TRWOptions())
cz.bethe(model, tolerance=0.1)
cz.exact(model, engine=3)
cz.mini_buckets(model, limit=16)
cz.torch.log_z(None, None, model, "trw", tolerance=1)
cz.generators.grid(3, 3, thetas=1)
cz.solve(model, tim=1.0)
cz.sample(model, 10, gapp=0.1)
cz.probability(model, {0: 1}, gapp=0.1)
"""


@pytest.mark.parametrize("name", cz.options.__all__)
def test_fields_by_name_are_those_of_the_options(name):
    options = getattr(cz.options, name)
    keywords = getattr(
        importlib.import_module(options.__module__), KEYWORDS.get(name, name.replace("Options", "Keywords"))
    )
    types = get_type_hints(options)
    assert get_type_hints(keywords) == {field.name: types[field.name] for field in fields(options)}


def test_drawings_are_what_generators_take():
    types = get_type_hints(cz.generators.from_graph.__wrapped__)
    assert get_type_hints(Drawing) == {name: types[name] for name in get_type_hints(Drawing)}


@pytest.mark.parametrize("call", [cz.bound, cz.iter_bounds, cz.bound_marginals, cz.clamp, cz.trw, cz.generators.grid])
def test_options_are_shown_by_name(call):
    parameters = inspect.signature(call).parameters.values()
    assert {"gap", "tol", "theta"} & {each.name for each in parameters}
    assert inspect.Parameter.VAR_KEYWORD not in {each.kind for each in parameters}


def test_type_checkers_refuse_what_is_no_option(tmp_path):
    pytest.importorskip("mypy")
    refused = REFUSED.strip().splitlines()
    (tmp_path / "asked.py").write_text(ACCEPTED.lstrip() + "\n".join(refused) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", "asked.py"]
    found = subprocess.run(
        command, cwd=tmp_path, env={"MYPYPATH": str(SOURCE), "PATH": ""}, capture_output=True, text=True, check=False
    )
    errors = [line for line in found.stdout.splitlines() if "error:" in line]
    first = ACCEPTED.strip().count("\n") + 2
    lines = {int(line.split(":")[1]) for line in errors}
    assert lines == set(range(first, first + len(refused))), found.stdout + found.stderr
