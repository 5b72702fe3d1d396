"""Every kernel is compiled once: an array of another layout or type would compile it again, silently, and run slower
ever after."""

import json
import subprocess
import sys

import pytest

# Runs every method on several kinds of model in a process of its own (other tests call kernels in ways the library
# never does) and prints the signatures of every kernel.
SCRIPT = """
import importlib, json, pkgutil
import numpy as np
import clampz as cz
from clampz import _kernels

rng = np.random.default_rng(0)
hard = cz.Model(np.zeros((4, 2)), {(i, (i + 1) % 4): [[0.0, -np.inf], [0.5, 0.0]] for i in range(4)})
drawn = [cz.generators.grid(3, 3, rng=0), cz.generators.lamp(rng=0), cz.generators.cycle(4, labels=3, rng=0)]
models = [*drawn, hard, cz.Model([[0.0, 1.0]])]
for model in models:
    batch = cz.Batch(model, rng.normal(size=(len(model.unary.flat), 9)))
    for name, method in cz.methods().items():
        estimate = method(model, max_iter=20)
        estimate.pairwise_marginals
        estimates = method(batch, max_iter=20, threads=2)
        estimates[3].pairwise_marginals
        if name != "exact":
            method(model, start=estimate, max_iter=20)
            method(batch, start=estimates, max_iter=20)
            method(batch, start=cz.mean_field(batch, max_iter=2), max_iter=20)
        method(model, evidence=[{0: 0}, {0: 1}, {}], max_iter=20)[2].pairwise_marginals
    for kind in ("sampled", "optimized"):
        cz.trw(batch, edge_weights=kind, num_steps=2, max_iter=20)
    model.topology.components
    for name in cz.methods():
        cz.clamp(model, name, k=1, select="pseudo-greedy", max_iter=20)
        anew = {"reweight": True, "edge_weights": "optimized"} if name == "trw" else {}
        cz.clamp(model, name, variables=[0], max_iter=20, **anew)
large = cz.generators.grid(120, 120, rng=0)
for method in (cz.mean_field, cz.bethe, cz.trw):
    method(large, max_iter=2, threads=2)

found = {}
for info in pkgutil.iter_modules(_kernels.__path__):
    module = importlib.import_module(f"clampz._kernels.{info.name}")
    for name, value in vars(module).items():
        if hasattr(value, "signatures") and value.py_func.__module__ == module.__name__:
            found[f"{info.name}.{name}"] = [str(signature) for signature in value.signatures]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def signatures():
    done = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_kernel_has_one_signature(signatures):
    several = {name: found for name, found in signatures.items() if len(found) > 1}
    assert not several, "\n".join(f"{name}: {' AND '.join(found)}" for name, found in several.items())


def test_the_run_reaches_the_kernels(signatures):
    wanted = {
        "messages.sweep_classes",
        "messages_general.sweep_classes",
        "mean_field.sweep_classes",
        "mean_field_tables.sweep_classes",
    }
    assert all(len(signatures[name]) == 1 for name in wanted)
