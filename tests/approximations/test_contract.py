"""What every approximation promises: one suite for all that are registered."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import clampz as cz
from clampz.method import Method
from clampz.model.conditioning import given
from clampz.model.results import stopped_estimates

BOUNDS = ("lower", "upper", "exact", None)
REASONS = ("tol", "max_iter", "time", "interrupt", "callback")

MODELS = {
    "grid": cz.generators.grid(3, 3, rng=0),
    "lamp": cz.generators.lamp(rng=1),
    "labels": cz.generators.cycle(4, labels=3, rng=2),
    "ragged": cz.Model(
        [[0.0, 1.0], [0.5, 0.0, -1.0], [2.0]],
        {(0, 1): [[0.0, 1.0, -1.0], [0.5, 0.0, 0.2]], (1, 2): [[0.0], [1.0], [0.0]]},
    ),
    "hard": cz.Model(
        np.zeros((3, 2)),
        {(0, 1): [[0.0, -np.inf], [0.0, 0.0]], (1, 2): [[0.0, 1.0], [-np.inf, 0.0]], (0, 2): [[0.0, 0.0], [1.0, 0.0]]},
    ),
    "factors": cz.Model(
        [[0.0, 1.0], [0.5, 0.0, -1.0], [0.0, 0.3], [0.1, 0.0]],
        {(0, 1): [[0.0, 1.0, -1.0], [0.5, 0.0, 0.2]]},
        factors=[
            ((3, 0, 1), np.random.default_rng(3).normal(size=(2, 2, 3))),
            ((1, 2, 3), np.where(np.arange(12).reshape(3, 2, 2) % 5 == 2, -np.inf, 0.5)),
        ],
    ),
    "single": cz.Model([[0.0, 1.0]]),
    "no edges": cz.Model(np.zeros((3, 2))),
}
AGREE, DIFFER = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
NAMED = cz.Model(
    [[0.0, 1.0], [0.0, 0.5], [0.2, 0.0]],
    {("a", "b"): AGREE, ("b", "c"): DIFFER, ("a", "c"): AGREE},
    names="abc",
    state_names=[["off", "on"]] * 3,
)


@pytest.fixture(params=cz.methods(), ids=str)
def method(request):
    return cz.methods()[request.param]


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def test_the_method_describes_itself(method):
    assert isinstance(method, Method)
    assert cz.methods()[method.name] is method and getattr(cz, method.name) is method
    assert method.name in repr(method)
    assert method.__doc__ and issubclass(method.options_type, cz.options.Options)
    assert method.options_type.__name__ in cz.options.__all__


def test_fields_have_their_types(method, model):
    estimate = method(model)
    assert isinstance(estimate, cz.results.Estimate) and estimate.method == method.name and estimate.model is model
    for name in ("log_z", "lower", "upper", "value", "residual"):
        assert type(getattr(estimate, name)) is float and not np.isnan(getattr(estimate, name))
    assert type(estimate.num_iter) is int and estimate.num_iter >= 1
    assert type(estimate.converged) is bool and estimate.converged
    assert estimate.bound in BOUNDS and estimate.stopped_by in REASONS and estimate.stopped_by == "tol"
    assert isinstance(estimate.note, str) and estimate.note == ""
    assert estimate.residual >= 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.log_z = 0.0


def test_bounds_are_what_bound_says(method, model):
    estimate, exact = method(model), cz.exact(model)
    assert estimate.lower <= exact.upper and estimate.upper >= exact.lower
    if estimate.bound == "lower":
        assert estimate.log_z == estimate.lower
    if estimate.bound == "upper":
        assert estimate.log_z == estimate.upper
    if estimate.bound == "exact":
        assert estimate.lower <= estimate.log_z <= estimate.upper
    if estimate.bound is None:
        assert (estimate.lower, estimate.upper) == (-np.inf, np.inf)


def test_marginals_are_distributions(method, model):
    estimate = method(model)
    assert len(estimate.marginals) == model.num_variables
    for i, row in enumerate(estimate.marginals):
        assert row.shape == (model.num_states[i],) and (row >= 0).all() and row.sum() == pytest.approx(1.0, abs=1e-12)
        assert not row.flags.writeable
    assert list(estimate.pairwise_marginals) == list(model.pairwise)
    for (i, j), table in estimate.pairwise_marginals.items():
        assert table.shape == (model.num_states[i], model.num_states[j])
        assert (table >= 0).all() and table.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(table.sum(axis=1), estimate.marginals[i], atol=1e-2)
        np.testing.assert_array_equal(estimate.pairwise_marginals[j, i], table.T)
    assert [scope for scope, _ in estimate.factor_marginals] == [scope for scope, _ in model.factors]
    assert estimate.factor_marginals is estimate.factor_marginals
    for scope, table in estimate.factor_marginals:
        assert table.shape == tuple(model.num_states[list(scope)]) and not table.flags.writeable
        assert (table >= 0).all() and table.sum() == pytest.approx(1.0, abs=1e-12)
        for place, i in enumerate(scope):
            others = tuple(k for k in range(len(scope)) if k != place)
            np.testing.assert_allclose(table.sum(axis=others), estimate.marginals[i], atol=1e-3)


def test_any_marginal_by_its_variables(method):
    model = MODELS["factors"]
    estimate = method(model)
    by_factor = estimate.factor_marginals[0].table  # over 0, 1, 3
    np.testing.assert_array_equal(estimate.marginal((0, 1, 3)), by_factor)
    np.testing.assert_array_equal(estimate.marginal([3, 0, 1]), by_factor.transpose(2, 0, 1))
    np.testing.assert_array_equal(estimate.marginal((1, 0)), estimate.pairwise_marginals[0, 1].T)
    np.testing.assert_array_equal(estimate.marginal(np.array([3, 0])), by_factor.sum(axis=1).T)  # no edge
    np.testing.assert_array_equal(estimate.marginal([2]), estimate.marginals[2])
    np.testing.assert_array_equal(estimate.marginal(2), estimate.marginals[2])
    assert estimate.marginal(()) == 1.0
    with pytest.raises(
        cz.errors.EvidenceError, match=r"no edge or factor of the model holds variables \(0, 2\) together"
    ):
        estimate.marginal((2, 0))
    with pytest.raises(cz.errors.EvidenceError, match=r"expected distinct variables, found \(1, 1\)"):
        estimate.marginal((1, 1))
    with pytest.raises(cz.errors.EvidenceError, match="unknown variable 7"):
        estimate.marginal((0, 7))


def test_what_evidence_makes_certain_has_joint_marginals_too(method):
    """A model with evidence worked in has no table over what is known."""
    model = given(MODELS["factors"], {1: 2})
    estimate, lane = method(model, tol=1e-9), method(MODELS["factors"], evidence={1: 2}, tol=1e-9)
    found = estimate.marginal((3, 1, 0))
    assert found.shape == (2, 3, 2) and not found[:, :2].any()
    np.testing.assert_array_equal(found[:, 2], estimate.pairwise_marginals[3, 0])
    np.testing.assert_allclose(lane.marginal((3, 1, 0)).sum(axis=1), lane.marginal((3, 0)), atol=1e-12)
    if method.name == "exact":
        np.testing.assert_allclose(found, lane.marginal((3, 1, 0)), atol=1e-12)


def test_no_time_no_marginals(method):
    none = stopped_estimates(method.name, MODELS["factors"], 2, method.options_type(), "time")[1]
    assert np.isnan(none.marginal((0, 1, 3))).all() and np.isnan(none.marginal((0, 1))).all()
    assert np.isnan(none.factor_marginals.flat).all() and len(none.factor_marginals) == 2


def test_repr_is_one_readable_line(method, model):
    text = repr(method(model))
    assert text.startswith(f"Estimate({method.name}: log Z = ") and "\n" not in text and len(text) < 200
    text = repr(method(model, evidence=[{}, {}]))
    assert text.startswith(f"Estimates({method.name}: 2 lanes") and "\n" not in text


def test_options_are_stored(method):
    model = MODELS["grid"]
    options = method.options_type(tol=1e-3, max_iter=77, threads=1)
    assert method(model, options=options).options == options
    assert method(model, options=options, tol=1e-2).options == dataclasses.replace(options, tol=1e-2)
    assert method(model, max_iter=5).options.max_iter == 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.tol = 1.0


def test_unknown_and_bad_options_are_refused(method):
    with pytest.raises(cz.errors.OptionError, match=r"unknown option 'max_itr'; did you mean 'max_iter'\?"):
        method(MODELS["grid"], max_itr=5)
    with pytest.raises(cz.errors.OptionError, match="tol"):
        method(MODELS["grid"], tol=-1.0)


def test_runs_are_repeatable_and_leave_the_model_alone(method, model):
    before = copy.deepcopy(model)
    one, two = method(model), method(model)
    assert (one.log_z, one.value, one.num_iter) == (two.log_z, two.value, two.num_iter)
    np.testing.assert_array_equal(one.marginals.flat, two.marginals.flat)
    assert model == before


def test_estimates_can_be_pickled(method, model):
    estimate = method(model)
    again = pickle.loads(pickle.dumps(estimate))
    assert (again.log_z, again.bound, again.num_iter, again.options) == (
        estimate.log_z,
        estimate.bound,
        estimate.num_iter,
        estimate.options,
    )
    assert again.model == model and repr(again) == repr(estimate)
    np.testing.assert_array_equal(again.marginals.flat, estimate.marginals.flat)
    np.testing.assert_array_equal(again.pairwise_marginals.flat, estimate.pairwise_marginals.flat)
    assert again.factor_marginals == estimate.factor_marginals
    many = method(model, evidence=[{}, {}])
    again = pickle.loads(pickle.dumps(many))
    np.testing.assert_array_equal(again.log_z, many.log_z)
    np.testing.assert_array_equal(again[1].pairwise_marginals.flat, many[1].pairwise_marginals.flat)
    assert again[1].factor_marginals == many[1].factor_marginals


def test_a_pickled_estimate_is_a_start(method):
    model = MODELS["grid"]
    again = pickle.loads(pickle.dumps(method(model)))
    assert cz.trw(model, start=again).converged


def test_evidence_by_name(method):
    estimate = method(NAMED, evidence={"b": "on"})
    assert estimate.log_z == method(NAMED, evidence={1: 1}).log_z
    assert estimate.marginal("b").tolist() == pytest.approx([0.0, 1.0], abs=1e-14)
    assert estimate.marginal("a").tolist() == estimate.marginals[0].tolist()
    np.testing.assert_array_equal(estimate.marginal(("b", "a")), estimate.pairwise_marginals[1, 0])
    np.testing.assert_allclose(estimate.pairwise_marginals[0, 1][:, 1], estimate.marginal("a"), atol=1e-6)
    assert estimate.model is NAMED
    with pytest.raises(cz.errors.EvidenceError):
        estimate.marginal("z")


def test_all_variables_given(method):
    estimate = method(NAMED, evidence={"a": 0, "b": 1, "c": 0})
    assert estimate.log_z == pytest.approx(NAMED.score([0, 1, 0]), abs=1e-12)
    assert estimate.converged


def test_no_evidence_is_empty_evidence(method):
    assert method(NAMED, evidence={}).log_z == method(NAMED).log_z
    assert isinstance(method(NAMED, evidence={}), cz.results.Estimate)


def test_batches_are_accepted(method, model):
    batch = cz.Batch(model, np.random.default_rng(0).normal(size=(len(model.unary.flat), 3)))
    estimates = method(batch)
    assert isinstance(estimates, cz.results.Estimates) and len(estimates) == 3
    for name in ("log_z", "lower", "upper", "value", "residual", "num_iter", "converged"):
        assert getattr(estimates, name).shape == (3,)
    assert len(estimates.stopped_by) == 3 and estimates.marginals_flat.shape == (len(model.unary.flat), 3)
    for b, estimate in enumerate(estimates):
        assert estimate.log_z == estimates.log_z[b]
        np.testing.assert_array_equal(estimate.marginals.flat, estimates.marginals_flat[:, b])
    assert (
        estimates[-1].log_z == estimates.log_z[2] and [e.log_z for e in estimates[1:]] == estimates.log_z[1:].tolist()
    )
    with pytest.raises(IndexError):
        estimates[3]
    with pytest.raises(cz.errors.OptionError, match="evidence goes with a model"):
        method(batch, evidence={0: 0})


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"z": 0}, "unknown variable 'z'"),
        ({5: 0}, "unknown variable 5"),
        ({"a": 2}, "unknown state 2"),
        ({"a": "maybe"}, "unknown state 'maybe'"),
        ({"a": 0, 0: 1}, "two states"),
        ([], "at least one evidence set"),
        ([{"a": 0}, {"z": 0}], "evidence set 1: unknown variable 'z'"),
    ],
)
def test_bad_evidence_is_refused(method, evidence, message):
    with pytest.raises(cz.errors.EvidenceError, match=message):
        method(NAMED, evidence=evidence)


def test_impossible_evidence_is_refused(method):
    with pytest.raises(cz.errors.EvidenceError, match="Z = 0"):
        method(MODELS["hard"], evidence={0: 0, 1: 1})


def test_no_variables(method):
    estimate = method(cz.Model([], constant=1.5))
    assert estimate.log_z == pytest.approx(1.5, abs=1e-12) and len(estimate.marginals) == 0


def test_a_constant_shifts_everything(method):
    model = MODELS["grid"]
    shifted = cz.Model(model.unary[:], model.pairwise, constant=model.constant + 7.25)
    assert method(shifted).log_z == pytest.approx(method(model).log_z + 7.25, abs=1e-9)
