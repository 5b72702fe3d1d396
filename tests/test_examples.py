"""The examples run, say what they found, and leave pictures; without an optional library they say so in one line."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
# Of each script: the libraries it needs besides clampz, its pictures, and a line of what it says.
SCRIPTS = {
    "bayesian_network.py": (["pgmpy", "matplotlib"], ["bayesian_network.png"], "= 0.000988227 exactly"),
    "denoising.py": (["matplotlib"], ["denoising.png"], "wrong pixels: 1.3%"),
    "random_field.py": (["matplotlib"], ["random_field.png"], "neighbours, exactly: -7.50 nats a picture"),
    "spin_glass.py": (["dimod", "matplotlib"], ["spin_glass_clamps.png", "spin_glass_lattice.png"], "exactly    41.29"),
}


def run(script, out, **environment):
    command = [sys.executable, str(EXAMPLES / script), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=out, env=os.environ | environment)


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_example(script, tmp_path):
    needed, pictures, line = SCRIPTS[script]
    for module in needed:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert line in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == pictures
    assert all(path.stat().st_size > 10_000 for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("script", "module"), [(script, module) for script, (needed, _, _) in SCRIPTS.items() for module in needed]
)
def test_a_missing_library_is_one_line(script, module, tmp_path):
    needed = SCRIPTS[script][0]
    if any(importlib.util.find_spec(other) is None for other in needed[: needed.index(module)]):
        pytest.skip("another library is missing before this one")
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / f"{module}.py").write_text(
        f"raise ModuleNotFoundError('No module named {module}', name='{module}')\n", encoding="utf-8"
    )
    paths = [str(shadow), os.environ.get("PYTHONPATH", "")]
    done = run(script, tmp_path, PYTHONPATH=os.pathsep.join(filter(None, paths)))
    assert done.returncode == 2
    assert done.stderr == f"this example needs {module}: pip install {module}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["shadow"]
