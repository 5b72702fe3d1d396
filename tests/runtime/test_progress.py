"""Progress for people: every call that takes `progress` takes True, and the line is where somebody looks."""

import inspect
import io
import subprocess
import sys
import threading
import types
from contextlib import contextmanager

import numpy as np
import pytest

import clampz as cz
from clampz.runtime import progress
from clampz.runtime.progress import as_callback

GRID = cz.generators.grid(4, 4, weights=(-6, 6), rng=0)
WIDE = cz.generators.complete(40, weights=(-3, 3), rng=0)
CALLS = {
    "bethe": (lambda **how: cz.bethe(GRID, **how), "Bethe, "),
    "exact": (lambda **how: cz.exact(GRID, evidence=[{}, {0: 1}], **how), "of 2 lanes done"),
    "mean_field": (lambda **how: cz.mean_field(GRID, **how), "mean field, "),
    "mini_buckets": (lambda **how: cz.mini_buckets(GRID, max_table=4, **how), "mini-buckets, "),
    "trw": (lambda **how: cz.trw(GRID, **how), "nats left to settle"),
    "clamp": (lambda **how: cz.clamp(GRID, "bethe", k=1, **how), "Bethe, "),
    "scores": (lambda **how: cz.scores(GRID, "maxW+TRE", **how), "TRW, "),
    "solve": (lambda **how: cz.solve(WIDE, time=0.5, **how), "log Z in"),
    "sample": (lambda **how: cz.sample(GRID, 50, **how), "50 of 50 samples after 50 draws"),
    "sample_blocks": (lambda **how: list(cz.sample_blocks(GRID, 50, **how)), "of 50 samples"),
    "sweep": (lambda **how: cz.sweep(GRID, [0.5, 1.0], **how), "of 2 lanes done"),
    "bound": (lambda **how: cz.bound(GRID, **how), "log Z in ["),
    "bound_marginals": (lambda **how: cz.bound_marginals(WIDE, [0], time=0.5, **how), "1 variable · widest interval "),
    "mode": (lambda **how: cz.mode(GRID, **how), "best score in ["),
    "fit": (lambda **how: cz.fit(GRID, np.zeros((2, 16), dtype=int), l2=0.1, **how), "1 step · log-likelihood "),
    "probability": (lambda **how: cz.probability(WIDE, {0: 1}, time=0.5, **how), "P in ["),
    "log_ratio": (lambda **how: cz.log_ratio(WIDE, WIDE.condition({0: 1}), time=0.5, **how), "log Z_a - log Z_b in ["),
}


@pytest.fixture
def lines(monkeypatch):
    """The lines that are shown, at once and without rest."""
    shown = []

    @contextmanager
    def line():
        yield shown.append
        shown.append("the end")

    monkeypatch.setattr(progress, "_line", line)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "LOOK", 0.001)
    return shown


class ClampStep:
    progress_words = ("half of it", "<b>")


def tell(shown, words):
    """Tell a line of a step, and wait until it is shown."""
    with as_callback(True, "working") as listener:
        listener(ClampStep)
        for _ in range(1000):
            if any(words in text for text in shown()):
                return
            threading.Event().wait(0.01)
    raise AssertionError(shown())


def test_every_call_that_takes_progress_is_tried():
    found = {
        name
        for name in cz.__all__
        if callable(call := getattr(cz, name))
        and not inspect.isclass(call)
        and "progress" in inspect.signature(call).parameters
    }
    assert found == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_every_call_that_takes_progress_takes_true(name, monkeypatch, lines):
    told = []
    monkeypatch.setattr(progress._Live, "__call__", lambda self, each: told.append(" · ".join(each.progress_words)))
    call, words = CALLS[name]
    call(progress=True)
    assert any(words in text for text in told), told


def test_a_line_says_what_is_done_and_how_far_it_is(lines):
    tell(lambda: lines, "working · half of it · <b> · 0 s")
    assert lines[-1] == "the end" and "working" in lines[0]


def test_quick_runs_show_nothing_and_others_only_if_asked(lines, monkeypatch):
    cz.exact(GRID, progress=False)
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    cz.exact(GRID, progress=True)
    assert lines == []


def test_the_line_ends_where_the_run_does(lines):
    with pytest.raises(ZeroDivisionError), as_callback(True, "working") as listener:
        listener(ClampStep)
        raise ZeroDivisionError
    assert not [thread for thread in threading.enumerate() if "show_all" in repr(thread)]


@pytest.mark.parametrize("wrong", [5, "yes"])
def test_what_is_no_listener_is_refused(wrong):
    with pytest.raises(cz.errors.OptionError, match="progress: expected True, or a function"):
        cz.trw(GRID, progress=wrong)


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "LOOK", 0.001)


@pytest.mark.usefixtures("at_once")
def test_in_a_notebook_it_is_an_output_that_changes_and_stays(monkeypatch):
    shown, changed = [], []

    class Handle:
        def update(self, bundle, raw):
            assert raw
            changed.append(bundle["text/html"])

    def display(bundle, raw, display_id):
        assert raw and display_id
        shown.append(bundle["text/plain"])
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    tell(lambda: changed, "working · half of it · &lt;b&gt; · 0 s")
    assert len(shown) == 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("rich", [True, False])
def test_on_a_terminal_it_is_a_line_that_is_gone_in_the_end(rich, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    if not rich:
        monkeypatch.setattr(progress, "find_spec", lambda name: None)
    tell(lambda: [terminal.getvalue()], "working · half of it · <b> · 0 s")
    assert terminal.getvalue().endswith("\x1b[2K" if rich else "\r\x1b[K")


@pytest.mark.usefixtures("at_once")
def test_in_a_log_there_is_a_line_now_and_then(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with as_callback(True, "working") as listener:
        listener(ClampStep)
        threading.Event().wait(0.3)
    assert log.getvalue().count("\n") == 1 and log.getvalue().startswith("working · ")


def test_nothing_is_imported_for_those_who_do_not_ask():
    code = "import clampz, sys; print({'rich', 'IPython', 'tqdm', 'pandas', 'xarray'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
