"""Figures: known to pyplot where somebody works with it, never piling up where nothing shows them."""

import subprocess
import sys
import warnings

import pytest

import clampz as cz
from clampz import plotting
from clampz.plotting import figures

plt = pytest.importorskip("matplotlib.pyplot")

MODEL = cz.generators.cycle(4, rng=0)
DRAWN = {
    "model": lambda ax=None: plotting.plot_model(MODEL, ax=ax),
    "marginals": lambda ax=None: plotting.plot_marginals(cz.bethe(MODEL), cz.exact(MODEL), ax=ax),
    "bracket": lambda ax=None: plotting.plot_estimates([cz.bethe(MODEL)], ax=ax),
    "clamped": lambda ax=None: cz.clamp(MODEL, "bethe", k=1).plot(ax=ax),
    "closing": lambda ax=None: cz.bound(MODEL).plot(ax=ax),
    "samples": lambda ax=None: cz.sample(MODEL, 50, rng=0).plot(ax=ax),
    "sweep": lambda ax=None: cz.sweep(MODEL, [0.5, 1.0]).plot(ax=ax),
}


@pytest.fixture(autouse=True)
def closed():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """A backend that is not one for files, as those of notebooks and windows."""
    (tmp_path / "a_notebook.py").write_text("from matplotlib.backends.backend_agg import *\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = plt.get_backend()
    plt.switch_backend("module://a_notebook")
    yield
    plt.switch_backend(before)


@pytest.mark.parametrize("name", DRAWN)
def test_what_a_notebook_shows_is_known_to_pyplot(name, shown):
    first, second = DRAWN[name](), DRAWN[name]()
    assert [plt.figure(number) for number in plt.get_fignums()] == [first.figure, second.figure]
    assert plt.gcf() is second.figure


@pytest.mark.parametrize("name", DRAWN)
def test_on_axes_of_the_caller_no_figure_is_made(name, shown):
    ax = plt.figure().add_subplot()
    assert DRAWN[name](ax) is ax
    assert plt.get_fignums() == [ax.figure.number]


def test_under_a_backend_for_files_pyplot_knows_the_last_one_alone(tmp_path):
    mine = plt.figure()
    with warnings.catch_warnings(), plt.rc_context({"figure.max_open_warning": 3}):
        warnings.simplefilter("error")
        all_of_them = [cz.plot_model(MODEL) for _ in range(5)]
    assert plt.get_fignums() == [mine.number, all_of_them[-1].figure.number]
    plt.savefig(tmp_path / "last.png")
    all_of_them[0].figure.savefig(tmp_path / "first.png")
    assert (tmp_path / "last.png").read_bytes() == (tmp_path / "first.png").read_bytes()


def test_what_is_let_go_pyplot_forgets(shown):
    figure = cz.plot_model(MODEL).figure
    figures.close_figure(figure)
    assert not plt.get_fignums()


def test_nothing_imports_pyplot_in_a_program_that_does_not(tmp_path):
    code = f"""import sys, clampz as cz
from clampz.plotting import figures
figure = cz.plot_model(cz.generators.cycle(3, rng=0)).figure
figure.savefig({str(tmp_path / "a.png")!r})
figures.close_figure(figure)
assert "matplotlib.pyplot" not in sys.modules
sys.ps1 = ">>> "  # an interactive session
cz.plot_model(cz.generators.cycle(3, rng=0))
assert sys.modules["matplotlib.pyplot"].get_fignums() == [1]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", DRAWN)
def test_without_matplotlib_it_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(cz.errors.MissingLibraryError, match="matplotlib is not installed: pip install matplotlib"):
        DRAWN[name]()
