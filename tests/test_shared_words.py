"""One way to say a thing: every public call that asks something of a model takes the same words, and they mean the
same."""

import inspect
import math
from dataclasses import fields

import numpy as np
import pytest
from enumerated import brute_force, log_sum, random_model

import clampz as cz
from clampz.runtime.seeds import as_seed

# Public functions that ask nothing of a model: they make one, change its form, draw it, or say what there is.
ASK_NOTHING = {"branches", "methods", "plot_clamped", "plot_model", "read", "selectors", "tied_parameters", "write"}
WORDS = ("evidence", "time", "memory", "threads", "rng", "progress")
# What a call has no use for, and why.
WITHOUT = {
    "fit": {"evidence": "has its evidence in its rows"},
    "scores": {"memory": "takes what a graph takes"},
    "simplify": {
        "threads": "one thread follows the rules",
        "rng": "they know no chance",
        "progress": "they are never what takes the time",
    },
    "iter_bounds": {"progress": "is itself how far it has come"},
}
MODEL = cz.Model(
    [[0.0, 0.3], [0.1, 0.0], [0.0, -0.4, 0.2]],
    {(0, 1): [[0.5, 0.0], [0.0, 0.7]], (1, 2): [[0.1, 0.2, 0.3], [0.9, 0.0, -0.3]], (0, 2): [[0, 1, 0], [1, 0, 0]]},
    names=["spin", "yes", "colour"],
    state_names=[["-1", "1"], ["yes", "no"], ["red", "green", "blue"]],
)
OPTIONS = {
    "bound": cz.options.BoundOptions,
    "iter_bounds": cz.options.BoundOptions,
    "bound_marginals": cz.options.BoundOptions,
    "clamp": cz.options.TRWOptions,
}


def calls():
    """The public calls, by name."""
    found = {name: getattr(cz, name) for name in cz.__all__}
    functions = {name: call for name, call in found.items() if callable(call) and not inspect.isclass(call)}
    other = ("from_", "to_")
    return {name: call for name, call in functions.items() if name not in ASK_NOTHING and not name.startswith(other)}


# Of the calls of other rooms, how they are called and what is read off: log Z of what they are about, or what it says.
ASKED = {
    "exact": lambda **more: cz.exact(MODEL, **more).log_z,
    "mean_field": lambda **more: cz.mean_field(MODEL, **more).log_z,
    "bethe": lambda **more: cz.bethe(MODEL, **more).log_z,
    "trw": lambda **more: cz.trw(MODEL, **more).log_z,
    "mini_buckets": lambda **more: cz.mini_buckets(MODEL, **more).log_z,
    "solve": lambda **more: cz.solve(MODEL, **more).log_z,
    "bound": lambda **more: cz.bound(MODEL, **more).lower,
    "iter_bounds": lambda **more: list(cz.iter_bounds(MODEL, **more))[-1].lower,
    "bound_marginals": lambda **more: cz.bound_marginals(MODEL, [2], **more).lower[2].sum(),
    "clamp": lambda **more: cz.clamp(MODEL, k=1, **more).log_z,
    "scores": lambda **more: cz.scores(MODEL, "maxW", **more).sum(),
    "simplify": lambda **more: cz.exact(cz.simplify(MODEL, **more).model).log_z,
    "probability": lambda **more: cz.probability(MODEL, {"colour": "red"}, **more).estimate,
    "log_ratio": lambda **more: cz.log_ratio(MODEL, MODEL.at(0.5), **more).estimate,
    "sample": lambda **more: cz.sample(MODEL, 50, **more).log_z,
    "sample_blocks": lambda **more: next(cz.sample_blocks(MODEL, 50, **more)).log_z,
    "mode": lambda **more: cz.mode(MODEL, **more).score,
    "sweep": lambda **more: cz.sweep(MODEL, 0.5, **more).log_z[0],
}
# What has its evidence in its rows.
NOT_ASKED = {"fit"}


def options_of(name):
    return {field.name for field in fields(OPTIONS[name])} if name in OPTIONS else set()


def takes(name, word):
    """Whether a call takes a word, by name or among its options."""
    return word in inspect.signature(calls()[name]).parameters or word in options_of(name)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("name", calls())
def test_every_call_takes_every_word(name, word):
    assert takes(name, word) != (word in WITHOUT.get(name, {}))


@pytest.mark.parametrize("name", calls())
def test_words_are_keywords_in_one_order(name):
    parameters = inspect.signature(calls()[name]).parameters
    own = [word for word in parameters if word in WORDS and word not in options_of(name)]
    assert own == [word for word in (*WORDS,) if word in own] or name in cz.methods()  # options of methods come last
    assert all(parameters[word].kind is inspect.Parameter.KEYWORD_ONLY for word in own)


FORMS = [
    {"spin": -1, "yes": True},
    {0: "-1", 1: "yes"},
    {"spin": np.int8(-1), "yes": 0},
    {"spin": [1.0, 0.0], "yes": np.array([1.0, 0.0])},
]


@pytest.mark.parametrize("name", ASKED)
def test_every_form_of_evidence_means_the_same(name):
    values = [ASKED[name](evidence=form) for form in FORMS]
    np.testing.assert_allclose(values, values[0], atol=1e-5)
    assert ASKED[name](evidence=None) != pytest.approx(values[0], abs=1e-3) or name == "bound_marginals"
    with pytest.raises(cz.errors.EvidenceError, match="unknown state 0 of variable 'spin'"):
        ASKED[name](evidence={"spin": 0})


@pytest.mark.parametrize("name", ASKED)
def test_limits_and_chance_are_said_alike(name):
    limits = {"time": 20, "memory": "1GB", "threads": 1, "rng": 3, "progress": lambda _: None}
    limits = {word: value for word, value in limits.items() if takes(name, word)}
    assert np.isfinite(ASKED[name](**limits))
    for bad in ({"time": -1}, {"memory": "much"}, {"threads": 0}, {"rng": "chance"}):
        word = next(iter(bad))
        if takes(name, word):
            with pytest.raises(cz.errors.OptionError, match=word):
                ASKED[name](**bad)


def test_every_call_is_asked():
    assert set(ASKED) == set(calls()) - NOT_ASKED


@pytest.mark.parametrize("name", calls())
def test_what_is_no_model_is_refused(name):
    more = {"scores": ["maxW"], "probability": [{0: 0}], "log_ratio": [MODEL], "sweep": [1.0], "fit": [[[0]]]}
    with pytest.raises(
        cz.errors.ModelError, match=r"^model: expected a Model, found 'model.uai': a file is read .* cz.read"
    ):
        calls()[name]("model.uai", *more.get(name, []), **({"k": 1} if name == "clamp" else {}))


@pytest.mark.parametrize("name", ["mean_field", "bethe", "trw", "bound", "bound_marginals", "clamp", "mini_buckets"])
def test_rng_is_the_seed_by_another_name(name):
    generator = np.random.default_rng(5)
    assert ASKED[name](rng=7, threads=1) == pytest.approx(ASKED[name](seed=7, threads=1), abs=1e-9)
    assert np.isfinite(ASKED[name](rng=generator))
    assert generator.bit_generator.state != np.random.default_rng(5).bit_generator.state  # a number was drawn
    with pytest.raises(cz.errors.OptionError, match="rng: expected either rng or the option seed"):
        ASKED[name](rng=7, seed=7)


def test_a_seed_that_is_a_large_number_is_one_too():
    assert as_seed(2**62) == as_seed(2**62) < 2**62
    assert as_seed(2**62) != as_seed(2**62 + 1)
    assert as_seed(np.random.default_rng(0)) == as_seed(np.random.default_rng(0))


@pytest.mark.parametrize("name", ["mean_field", "bethe", "trw"])
def test_lanes_that_do_not_fit_into_memory_are_refused(name):
    with pytest.raises(
        cz.errors.OptionError, match=r"memory: expected at least [\d,]+ bytes for 3 lanes of this size, found 100"
    ):
        getattr(cz, name)(MODEL, evidence=[{}] * 3, memory=100)


@pytest.mark.parametrize("seed", range(25))
def test_soft_evidence_against_all_configurations(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, most=5)
    i = int(rng.integers(model.num_variables))
    evidence = {i: (rng.random(model.num_states[i]) + 0.05).tolist()}
    wanted = log_sum(brute_force(model, evidence))
    if wanted == -math.inf:
        return
    ends = cz.bound(model, evidence=evidence)
    assert ends.lower - 1e-9 <= wanted <= ends.upper + 1e-9
    for value in (cz.exact(model, evidence=evidence).log_z, cz.solve(model, evidence=evidence).log_z):
        assert value == pytest.approx(wanted, abs=1e-9)
    assert cz.trw(model, evidence=evidence).upper >= wanted - 1e-9
    assert cz.mean_field(model, evidence=evidence).lower <= wanted + 1e-9


def test_a_list_of_evidence_has_a_list_of_solutions():
    sets = [{"spin": 1}, {}, {"colour": "blue", "yes": [0.3, 0.7]}]
    found = cz.solve(MODEL, evidence=sets, time=6)
    assert [solution.log_z for solution in found] == [
        pytest.approx(cz.solve(MODEL, evidence=known).log_z, abs=1e-9) for known in sets
    ]
    with pytest.raises(cz.errors.EvidenceError, match=r"^evidence set 1: unknown variable 'x'"):
        cz.solve(MODEL, evidence=[{}, {"x": 1}])
    with pytest.raises(cz.errors.EvidenceError, match=r"expected at least one evidence set"):
        cz.solve(MODEL, evidence=[])


def test_a_list_of_evidence_shares_the_time_and_stops_with_one_of_it():
    model, asked = cz.generators.complete(40, weights=(-2, 2), rng=0), []

    def stop(progress):
        asked.append(progress)
        raise StopIteration

    found = cz.solve(model, evidence=[{}, {0: 1}, {0: 0}], marginals=False, time=60, threads=1, progress=stop)
    assert len(found) == 3 and all(solution.interrupted for solution in found)
    assert sum(solution.seconds for solution in found) < 30


def test_a_checkpoint_is_of_the_model_under_its_evidence(tmp_path):
    model, path = cz.generators.grid(6, 6, weights=(-3, 3), rng=0), tmp_path / "some.bounds"
    limits = {"max_table": 8, "leaves": 4, "exact": False, "checkpoint": path, "time": 60, "threads": 1}
    first = cz.bound(model, evidence={0: 1}, **limits)
    again = cz.bound(model, evidence={0: 1}, **limits | {"leaves": 8})
    assert again.lower >= first.lower and again.upper <= first.upper and len(again.trace) > len(first.trace)
    assert again.lower <= cz.exact(model, evidence={0: 1}).log_z <= again.upper
    for evidence in ({0: 0}, None):
        with pytest.raises(cz.errors.OptionError, match="checkpoint"):
            cz.bound(model, evidence=evidence, **limits)
