"""Options: what is refused, and how some of them are changed."""

import inspect

import numpy as np
import pytest

import clampz as cz
from clampz.bounding.options import BoundOptions
from clampz.runtime.options import Options, as_bytes, memory_allowed

HARD = cz.generators.complete(12, weights=(-12, 12), rng=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tol": -1.0}, r"tol: expected a number of nats >= 0, found -1.0"),
        ({"tol": float("nan")}, r"tol: expected a number of nats >= 0, found nan"),
        ({"tol": "small"}, r"tol: expected a number of nats >= 0, found 'small'"),
        ({"max_iter": 0}, r"max_iter: expected a whole number >= 1, found 0"),
        ({"max_iter": 1.5}, r"max_iter: expected a whole number >= 1, found 1.5"),
        ({"max_iter": True}, r"max_iter: expected a whole number >= 1, found True"),
        ({"time": -1}, r"time: expected seconds >= 0, found -1"),
        ({"time": None}, r"time: expected seconds >= 0, found None"),
        ({"threads": 0}, r"threads: expected None or a whole number >= 1, found 0"),
        ({"threads": 1.5}, r"threads: expected None or a whole number >= 1, found 1.5"),
        (
            {"max_iters": 3},
            r"unknown option 'max_iters'; did you mean 'max_iter'\? The options are tol, max_iter, time, threads",
        ),
        ({"qwxyz": 3}, r"unknown option 'qwxyz'\. The options are tol, max_iter, time, threads"),
    ],
)
def test_option_errors_name_the_option(changes, message):
    with pytest.raises(cz.errors.OptionError, match=message):
        Options().with_changes(changes)


def test_options_are_changed_by_making_new_ones():
    options = Options()
    assert options.with_changes({"tol": 1e-3, "max_iter": np.int64(5), "threads": 2}).max_iter == 5
    assert options == Options()
    assert options.num_threads >= 1
    assert Options(threads=2).num_threads == 2


@pytest.mark.parametrize("method", cz.methods())
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tol": -1e-3}, r"tol: expected a number of nats >= 0, found -0.001"),
        ({"tol": float("nan")}, r"tol: expected a number of nats >= 0, found nan"),
        ({"max_iter": 0}, r"max_iter: expected a whole number >= 1, found 0"),
        ({"max_iter": 2.5}, r"max_iter: expected a whole number >= 1, found 2.5"),
        ({"time": -1}, r"time: expected seconds >= 0, found -1"),
        ({"threads": 0}, r"threads: expected None or a whole number >= 1, found 0"),
        (
            {"tolerance": 1},
            r"unknown option 'tolerance'; did you mean 'tol'\?|unknown option 'tolerance'\. The options are tol",
        ),
        ({"thread": 1}, r"unknown option 'thread'; did you mean 'threads'\?"),
    ],
)
def test_options_out_of_range(method, changes, message):
    with pytest.raises(cz.errors.OptionError, match=message):
        cz.methods()[method](HARD, **changes)


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("trw", {"edge_weight": "uniform"}, "did you mean 'edge_weights'"),
        (
            "trw",
            {"edge_weights": "unifrom"},
            "edge_weights: expected one of uniform, sampled, optimized or an array, found 'unifrom'",
        ),
        ("trw", {"num_trees": 0}, "num_trees: expected a whole number >= 1, found 0"),
        ("trw", {"num_steps": 0}, "num_steps: expected a whole number >= 1, found 0"),
        ("bethe", {"num_start": 3}, "did you mean 'num_starts'"),
        ("bethe", {"num_starts": -1}, "num_starts: expected a whole number from 0 to 1,000,000, found -1"),
        ("mean_field", {"num_starts": -1}, "num_starts: expected a whole number from 0 to 1,000,000, found -1"),
        ("exact", {"memory": -1}, r"memory: expected bytes, or text such as \"2GB\", found -1"),
        ("exact", {"memory": "much"}, r"memory: expected bytes, or text such as \"2GB\", found 'much'"),
    ],
)
def test_options_of_each_method(method, changes, message):
    with pytest.raises(cz.errors.OptionError, match=message):
        cz.methods()[method](HARD, **changes)


def test_memory_is_bytes_or_text():
    assert cz.exact(HARD, memory="1GB").log_z == cz.exact(HARD, memory=10**9).log_z
    assert cz.exact(HARD, memory=np.int64(10**9)).options.memory == 10**9
    for memory in (1000, "1000", "1KB", "0.001 MB"):
        with pytest.raises(cz.errors.TooWideError, match="1,000 are allowed"):
            cz.exact(HARD, memory=memory)


@pytest.mark.parametrize(
    ("text", "number"),
    [("2GB", 2e9), ("500MB", 5e8), ("1.5 kb", 1500), ("1GiB", 2**30), (7, 7), ("7", 7), ("8B", 8), ("0", 0)],
)
def test_bytes_are_read(text, number):
    assert as_bytes(text) == number == memory_allowed(text)


@pytest.mark.parametrize("memory", ["", "GB", "2 XB", "nan", "inf", "-1", -1, True, 1j, None])
def test_what_is_no_memory(memory):
    with pytest.raises(cz.errors.OptionError, match="memory: expected bytes"):
        as_bytes(memory)


def test_options_of_a_search_are_changed_in_the_same_way():
    assert BoundOptions().with_changes({"gap": 0.5, "memory": "1GB"}) == BoundOptions(gap=0.5, memory="1GB")
    with pytest.raises(cz.errors.OptionError, match=r"unknown option 'gaps'; did you mean 'gap'"):
        BoundOptions().with_changes({"gaps": 1})


# -- every public call -------------------------------------------------------------------------------------------------


def with_options():
    """Public calls that have options by name alone, by their own name."""
    found = {name: getattr(cz, name) for name in cz.__all__}
    found |= {f"generators.{name}": getattr(cz.generators, name) for name in cz.generators.__all__}
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    return {
        name: each
        for name, each in found.items()
        if callable(each)
        and not inspect.isclass(each)
        and any(parameter.kind in by_name for parameter in inspect.signature(each).parameters.values())
    }


CALLS = with_options()


def test_calls_are_found():
    assert {"sample", "solve", "clamp", "trw", "plot_model", "generators.grid", "from_pgmpy"} < CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_every_call_says_which_options_it_has(name):
    parameters = inspect.signature(CALLS[name]).parameters.values()
    required = [HARD for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    with pytest.raises(cz.errors.OptionError, match=r"^unknown option 'qwxyz'\. The options are \w+"):
        CALLS[name](*required, qwxyz=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: cz.sample(HARD, num=5),
            r"'num'; did you mean 'num_samples'\? The options are num_samples, evidence, m",
        ),
        (lambda: cz.sample(HARD, n_samples=5), r"'n_samples'; did you mean 'num_samples'\?"),
        (lambda: cz.sample(HARD, size=5), r"'size'\. The options are num_samples, evidence, method, "),
        (lambda: cz.mode(HARD, k=2), r"'k'\. The options are evidence, num_best, "),
        (lambda: cz.generators.grid(3, 3, toroid=False), r"'toroid'; did you mean 'toroidal'\?"),
        (lambda: cz.generators.grid(3, 3, seed=1), r"'seed'\. The options are toroidal, .*, rng$"),
    ],
)
def test_an_option_that_is_guessed_leads_to_the_right_one(call, message):
    with pytest.raises(cz.errors.OptionError, match=f"^unknown option {message}"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cz.solve(HARD, 10), "solve: expected model without a name, found 2 arguments; .* as in time=10$"),
        (lambda: cz.bound(HARD, 10), "bound: expected model without a name, found 2 arguments"),
        (lambda: cz.bound_marginals(HARD, [0], 10), "bound_marginals: expected model and variables without a name"),
        (lambda: cz.clamp(HARD, "trw", 2), "clamp: expected model and method without a name, found 3 arguments"),
        (lambda: cz.generators.grid(3, 3, False), "grid: expected rows and cols without a name, found 3 arguments"),
        (lambda: cz.trw(HARD, 10), "trw: expected the model alone without a name, found 2 arguments"),
    ],
)
def test_options_are_named(call, message):
    with pytest.raises(cz.errors.OptionError, match=f"^{message}"):
        call()


def test_what_a_call_needs_can_be_named_too():
    assert len(cz.sample(num_samples=3, model=HARD, rng=0).states) == 3
