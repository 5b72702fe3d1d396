"""Other libraries find the same log Z in the files that are written here.  Each test is skipped where its library is
not installed.

pyAgrum's reader of UAI files fills a table with the first variable varying fastest, against the format, and in single
precision: it gets files whose tables read the same both ways.
"""

import math
import re
import subprocess
import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import clampz as cz

MODELS = {
    "grid": lambda: cz.generators.grid(3, 3, toroidal=False, rng=1),
    "factors": lambda: _factor_model(hard=False),
    "zeros": lambda: _factor_model(hard=True),
}


def _factor_model(hard):
    rng = np.random.default_rng(5)
    num_states = np.array([2, 3, 2, 4, 2])
    factors = []
    for scope in ([3, 0], [1, 4, 2], [4, 0, 1, 3], [2]):
        table = 4 * rng.normal(size=num_states[scope])
        table[rng.random(table.shape) < 0.2 * hard] = -np.inf
        factors.append((scope, table))
    return cz.Model.from_factors(num_states, factors, constant=2.5)


@pytest.fixture(params=MODELS)
def written(request, tmp_path):
    """A file, and its log Z."""
    model = MODELS[request.param]()
    cz.write(model, tmp_path / "model.uai")
    return str(tmp_path / "model.uai"), cz.exact(model).log_z


def _without_warnings(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


@pytest.mark.filterwarnings("ignore")
def test_pgmpy(written):
    _without_warnings("pgmpy")
    from pgmpy.readwrite import UAIReader

    path, log_z = written
    assert math.log(UAIReader(path).get_model().get_partition_function()) == pytest.approx(log_z, abs=1e-8)


@pytest.mark.filterwarnings("ignore")
def test_pygms(written):
    gm = _without_warnings("pygms")
    _without_warnings("pygms.wmb")
    path, log_z = written
    model = gm.GraphModel(gm.readUai(path))
    order, _ = gm.eliminationOrder(model, "minfill")
    assert sys.modules["pygms.wmb"].JTree(model, order, weights=1.0).msgForward() == pytest.approx(log_z, abs=1e-8)


def _printed(code, path, pattern):
    """What a script, in a process of its own as its library is native code, prints about a file."""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)
    found = re.search(pattern, done.stdout)
    assert found, done.stdout + done.stderr
    return [float(number) for number in found.groups()]


PYAGRUM = """
import math, sys
import pyagrum
field = pyagrum.loadMRF(sys.argv[1])
product = pyagrum.Tensor().fillWith(1)
for scope in field.factors():
    product *= field.factor(scope)
print("log Z", math.log(product.sum()))
"""


@pytest.mark.skipif(find_spec("pyagrum") is None, reason="pyAgrum is not installed")
def test_pyagrum(tmp_path):
    model = MODELS["grid"]()
    cz.write(model, tmp_path / "model.uai")
    assert _printed(PYAGRUM, tmp_path / "model.uai", r"log Z (\S+)") == [pytest.approx(cz.exact(model).log_z, abs=1e-5)]


TOULBAR2 = """
import sys
import pytoulbar2
network = pytoulbar2.CFN(verbose=-1)
option = network.Option
option.isZ, option.logepsilon, option.uai, option.hbfs = True, -float("inf"), 1, 0
option.preprocessFunctional, option.preprocessNary, option.elimDegree_preprocessing = 0, 0, -1
option.elimDegree, option.DEE = 0, 0
option.costfuncSeparate = False
network.Read(sys.argv[1])
network.Solve()
"""


@pytest.mark.skipif(find_spec("pytoulbar2") is None, reason="toulbar2 is not installed")
def test_toulbar2(written):
    """It prints bounds on the logarithm, to seven digits."""
    path, log_z = written
    assert _printed(TOULBAR2, path, r"(\S+) <= Log\(Z\) <= (\S+)") == [pytest.approx(log_z, abs=1e-4)] * 2
