"""Every kernel is compiled once: an array of another layout or type would compile it again, silently, and run slower
ever after."""

import inspect
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from walk import KERNELS, unreached

# In a process of its own: other tests call kernels in ways the library never does.
SCRIPT = """
import json
from walk import KERNELS, walk
walk()
print(json.dumps({name: [str(signature) for signature in value.signatures] for name, value in KERNELS.items()}))
"""


@pytest.fixture(scope="module")
def signatures():
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1] / "support", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def most_signatures(function) -> float:
    """One; two where tables may also be logarithms, or be of one lane or of several, each with a weight of its own; any
    number where it disappears into the kernels that call it."""
    if function.targetoptions.get("forceinline"):
        return math.inf
    return 2 if {"logs", "lanes", "inverse"} & inspect.signature(function.py_func).parameters.keys() else 1


def test_every_kernel_has_one_signature(signatures):
    several = {name: found for name, found in signatures.items() if len(found) > most_signatures(KERNELS[name])}
    assert not several, "\n".join(f"{name}: {' AND '.join(found)}" for name, found in several.items())


def test_the_walk_reaches_the_kernels(signatures):
    assert not unreached({name for name, found in signatures.items() if found})
