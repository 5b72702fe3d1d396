"""Counts against the sum over all configurations, and whatever may happen to the programs that count."""

import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from naive import enumerate_factors

import clampz as cz
from clampz.model_counting import circuits, ganak, subprocesses
from clampz.model_counting.count import MISSING, OUT_OF_TIME, count, is_available
from clampz.model_counting.encoding import encode
from clampz.model_counting.subprocesses import Failed, Program
from clampz.runtime.budget import Budget

EXACT = 1e-11
MEMORY = 10**9
NEVER = -math.inf

pytest.importorskip("pyganak")
HAS_COMPILER = circuits.compiler() is not None
with_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="dsharp is not installed")


def random_model(seed):
    """With zeros, equal entries, larger factors; and its log Z and marginals."""
    rng = np.random.default_rng(seed)
    num_states = rng.choice([1, 2, 2, 3, 8], 6)
    factors = [((i,), rng.normal(size=k)) for i, k in enumerate(num_states)]
    for size in rng.integers(2, 5, 6):
        scope = tuple(rng.choice(6, size, replace=False).tolist())
        factors.append((scope, rng.choice([0.0, 0.5, -1.5, NEVER], num_states[list(scope)], p=[0.5, 0.1, 0.1, 0.3])))
    log_z, marginals, _ = enumerate_factors(num_states, factors)
    return cz.Model.from_factors(num_states, factors), log_z, np.concatenate(marginals)


def chain(n, theta):
    """x0 implies x1 implies ..., each state 1 weighing theta: n + 1 configurations of which log Z is known."""
    implies = np.array([[0.0, 0.0], [NEVER, 0.0]])
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    model = cz.Model.from_arrays(np.tile([0.0, theta], (n, 1)), edges, np.tile(implies, (n - 1, 1, 1)))
    return model, float(np.logaddexp.reduce(theta * np.arange(n + 1.0)))


@with_compiler
@pytest.mark.parametrize("seed", range(6))
def test_what_is_proven_is_true(seed):
    model, log_z, marginals = random_model(seed)
    found = count(model, marginals=True)
    assert found.is_proven
    if log_z == NEVER:
        assert found.log_z == found.lower == NEVER
        assert np.isnan(found.marginals).all()
        return
    assert abs(found.log_z - log_z) <= found.error < EXACT
    assert found.lower <= log_z
    np.testing.assert_allclose(found.marginals, marginals, 0, EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_compiler_a_count_is_right_and_no_bound(seed, monkeypatch):
    monkeypatch.setattr(circuits, "compiler", lambda: None)
    model, log_z, marginals = random_model(seed)
    found = count(model, marginals=True)
    assert not found.is_proven and found.lower == NEVER
    assert found.log_z == pytest.approx(log_z, abs=EXACT)
    np.testing.assert_allclose(found.marginals, marginals, 0, EXACT)


@with_compiler
def test_without_a_counter_the_compiler_does_it(monkeypatch):
    monkeypatch.setattr(ganak, "is_there", lambda: False)
    model, log_z, _ = random_model(1)
    found = count(model)
    assert found.is_proven and abs(found.log_z - log_z) <= found.error


@pytest.mark.parametrize("theta", [-40.0, 40.0])
def test_counts_beyond_floats(theta):
    """log Z of 0 and 8000 where the weights as they are make e to the power of -+8000 or so."""
    model, log_z = chain(200, theta)
    assert ganak.log_count(encode(model), Budget(), MEMORY) + encode(model).scale == pytest.approx(log_z, abs=1e-9)


class Scripted:
    """In place of a counter: what it would give of a count at each scale."""

    def __init__(self, log2_count):
        self.log2_count = log2_count

    def found_at(self, window):
        for tries in range(1, 100):
            bits = self.log2_count - window.center
            scaled = 0.0 if bits < -1074 else math.inf if bits > 1023 else 2.0**bits
            if window.holds(scaled):
                return window.center + math.log2(scaled), tries
            if not window.move(up=scaled > 1.0):
                return NEVER, tries
        raise AssertionError


@pytest.mark.nojit
@pytest.mark.parametrize("theta", [-30.0, 30.0])
def test_the_window_comes_to_every_count(theta):
    clauses = encode(chain(300, theta)[0])
    low, high = clauses.lowest / math.log(2), clauses.highest / math.log(2)
    for log2_count in np.linspace(low, high, 50):
        found, tries = Scripted(log2_count).found_at(ganak.Window(clauses))
        assert found == pytest.approx(log2_count) and tries <= 2 + (high - low) / ganak.MOST_BITS
    assert Scripted(-1e9).found_at(ganak.Window(clauses))[0] == NEVER


def test_sizes_at_the_ends():
    assert count(cz.Model([])).log_z == 0.0
    assert count(cz.Model([[0.5]])).log_z == 0.5
    assert count(cz.Model([[0.5], [0.25]]), marginals=True).marginals.tolist() == [1.0, 1.0]
    found = count(cz.Model([[NEVER, NEVER]], constant=1e15))
    assert found.log_z == NEVER and found.is_proven
    assert "differ by 1e+15 nats" in count(cz.Model([[0.0, 1e15]])).why_none
    assert count(cz.Model([[0.0, 1.0]])).log_z == pytest.approx(math.log(1 + math.e), abs=EXACT)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(ganak, "is_there", lambda: False)
    monkeypatch.setattr(circuits, "compiler", lambda: None)
    assert not is_available()
    found = count(chain(5, 0.0)[0])
    assert found.log_z is None and found.why_none == MISSING and "clampz[counting]" in MISSING


def hard():
    """Random clauses: nobody counts these in a minute."""
    rng = np.random.default_rng(0)
    factors = []
    for _ in range(700):
        table = np.zeros((2, 2, 2))
        table[tuple(rng.integers(0, 2, 3))] = NEVER
        factors.append((rng.choice(250, 3, replace=False).tolist(), table))
    return cz.Model.from_factors([2] * 250, factors)


def children():
    """Processes that this one has started and that are not gone, zombies included."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return len(listed.stdout.split()) - 1  # ps itself


def test_a_count_ends_with_the_watch_and_leaves_nobody_behind():
    before = children()
    budget = Budget(stop=lambda: children() > before)  # as soon as they are at work
    found = count(hard(), budget=budget)
    assert found.log_z is None and found.why_none == OUT_OF_TIME
    assert children() == before
    assert count(hard(), budget=Budget(0.0)).why_none == OUT_OF_TIME


def test_ctrl_c_leaves_nobody_behind():
    before = children()
    budget = Budget()

    def interrupt():
        while children() == before:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with budget.interruptible():
        found = count(hard(), budget=budget)
    thread.join()
    assert budget.stopped_by == "interrupt" and found.why_none == OUT_OF_TIME
    assert children() == before


# Children that do something else: what they do, and what is said of it.
ACCIDENTS = {
    "was killed (SIGKILL)": "import os; os.kill(os.getpid(), 9)",
    "was killed (SIGABRT)": "import os; os.abort()",
    "Ganak failed: no luck": "import sys; sys.exit('no luck')",
    "Ganak failed: 7": "import os; os._exit(7)",
    "ended without an answer": "",
    "ended without an answer ": "import shutil; shutil.rmtree(sys.argv[1]); sys.exit(1)",
    "gave no numbers": "open(sys.argv[1] + '/answer', 'w').write('ten')",
    "[nan], which is no count": "open(sys.argv[1] + '/answer', 'w').write('nan')",
    "[-1.0], which is no count": "open(sys.argv[1] + '/answer', 'w').write('-0x1p0')",
    "[], which is no count": "open(sys.argv[1] + '/answer', 'w').write('')",
    "more than 100 MB of memory": "full = b'1' * 10**9",
    "more than 100 MB of memory ": "raise MemoryError",
}


@pytest.mark.parametrize(("said", "does"), ACCIDENTS.items())
def test_accidents_leave_a_reason(said, does, monkeypatch, tmp_path):
    other = tmp_path / "child.py"
    other.write_text(f"import sys, time\n{does}\n{'time.sleep(60)' if 'full' in does else ''}\n")
    monkeypatch.setattr(subprocesses, "CHILD", other)
    found = count(chain(5, 0.0)[0], memory=300_000_000)
    assert found.log_z is None and said.strip() in found.why_none


def test_a_program_that_cannot_be_started_leaves_a_reason(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert "could not be started" in count(chain(5, 0.0)[0]).why_none
    monkeypatch.setattr(sys, "executable", "")
    assert "there is no Python" in count(chain(5, 0.0)[0]).why_none


@with_compiler
def test_a_wrong_circuit_does_not_spoil_the_count(monkeypatch):
    def fails(*_):
        raise Failed("dsharp wrote a circuit that cannot be summed")

    monkeypatch.setattr(circuits, "checked", fails)
    model, log_z = chain(9, 0.5)
    found = count(model)
    assert found.log_z == pytest.approx(log_z, abs=EXACT) and not found.is_proven and found.lower == NEVER


@with_compiler
def test_a_circuit_without_a_proof_is_a_lower_bound(monkeypatch):
    monkeypatch.setattr(circuits, "completed", lambda circuit, *_: circuit)
    model, log_z, marginals = random_model(1)
    found = count(model, marginals=True)
    assert not found.is_proven and log_z - EXACT < found.lower <= log_z
    np.testing.assert_allclose(found.marginals, marginals, 0, EXACT)


def test_a_child_ends_with_its_parent():
    """The parent is killed; its child, which would work for an hour, is gone soon after."""
    script = (
        "import sys, time; from clampz.model_counting.subprocesses import Program;"
        "command = [sys.executable, '-c', 'import time; time.sleep(3600)'];"
        "p = Program('x', {'work': 'run', 'command': command}, {}, 10**9);"
        "print(p._process.pid, p.folder, flush=True); time.sleep(3600)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        pid, folder = parent.stdout.readline().split()
        # it has set its limits by the time that it is another program
        while "sleep(3600)" not in (command := command_of(pid)):
            assert command, "the child is gone"
            time.sleep(0.01)
        parent.kill()
    while command_of(pid):
        time.sleep(0.01)
    subprocess.run(["rm", "-r", folder], check=True)


def command_of(pid):
    return subprocess.run(["ps", "-o", "args=", "-p", pid], capture_output=True, text=True, check=False).stdout


def test_a_program_is_gone_with_its_folder():
    with Program(
        "x", {"work": "run", "command": [sys.executable, "-c", "import time; time.sleep(60)"]}, {}, MEMORY
    ) as it:
        pid, folder = str(it._process.pid), it.folder
        assert folder.exists() and command_of(pid)
    assert not folder.exists() and not command_of(pid)
