"""fit: moments, gradients and likelihoods against enumeration; hidden values, inputs, bounds, limits, bad input."""

import itertools
import os
import signal

import numpy as np
import pytest
from budgets import Asked
from data_for_learning import random_rows, small_model
from naive import all_configurations, log_sum_exp

import clampz as cz
from clampz.learning import likelihood
from clampz.learning.data_rows import as_rows
from clampz.learning.fit import _Optimizer, _options
from clampz.learning.likelihood import Cases, Inputs, Objective
from clampz.learning.parameters import Features
from clampz.runtime.budget import Budget, Cancelled

CLOSE = 1e-9
STEP = 1e-5
NAMED = cz.Model(np.zeros((3, 2)), {("a", "b"): np.eye(2)}, names=["a", "b", "c"], state_names=[["off", "on"]] * 3)


def naive_likelihood(model, rows, added=None):
    """Mean log-likelihood by visiting every configuration for every row."""
    total = 0.0
    for r, row in enumerate(rows):
        table = {}
        for x in all_configurations(model.num_states):
            extra = 0.0 if added is None else sum(added[r][model.unary.start[i] + a] for i, a in enumerate(x))
            table[x] = model.score(x) + extra
        given = [v for x, v in table.items() if all(s in (-1, a) for s, a in zip(row, x, strict=True))]
        total += log_sum_exp(given) - log_sum_exp(list(table.values()))
    return total / len(rows)


def objective(model, data, method="exact", inputs=None, parameters=None, l2=0.0, options=None):
    solve, rows = cz.methods()[method], as_rows(model, data)
    cases = Cases(model, rows, None if inputs is None else Inputs(model, inputs, len(rows)), Budget())
    whole = Objective(model, cases, solve, _options(solve, options, None, None), Budget())
    return _Optimizer(whole, Features(model, parameters), l2, 1e-5, None)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["alone", "potentials", "covariates"])
def test_value_and_gradient_are_those_of_enumeration(seed, missing, kind):
    rng = np.random.default_rng(seed)
    model = small_model(rng, labels=3 if kind == "covariates" else None)
    rows = random_rows(rng, model, 5, missing)
    n, num_states = model.num_variables, len(model.unary.flat)
    inputs = {"alone": None, "potentials": rng.normal(size=(5, num_states)), "covariates": rng.normal(size=(5, n, 2))}
    ascent = objective(model, rows, inputs=inputs[kind], l2=0.1)
    x = 0.3 * rng.normal(size=ascent.num_parameters)

    def naive(x):
        added = inputs[kind]
        if kind == "covariates":
            added = (added @ x[-6:].reshape(2, 3)).reshape(5, -1)
        return 0.05 * float(x @ x) - naive_likelihood(ascent.model_at(x), rows, added)

    cost, gradient = ascent.cost_and_gradient(x)
    assert cost == pytest.approx(naive(x), abs=CLOSE)
    for k in rng.choice(len(x), size=4, replace=False):
        moved = [x + step * (np.arange(len(x)) == k) for step in (-STEP, STEP)]
        assert gradient[k] == pytest.approx((naive(moved[1]) - naive(moved[0])) / (2 * STEP), abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_moments_match_at_the_optimum(seed):
    """Free tables: the model's marginals are the data's frequencies, of every table."""
    rng = np.random.default_rng(seed)
    model = small_model(rng, zeros=0.0)
    rows = random_rows(rng, model, 80)
    found = cz.fit(model, rows, tol=1e-6, max_iter=2000)
    assert found.converged and found.bound == "exact" and found.stopped_by == "tol" and found.note == ""
    exact = cz.exact(found.model)
    for i in range(model.num_variables):
        frequencies = np.bincount(rows[:, i], minlength=model.num_states[i]) / len(rows)
        np.testing.assert_allclose(exact.marginals[i], frequencies, atol=2e-6)
    for scope, table in [*exact.pairwise_marginals.items(), *exact.factor_marginals]:
        frequencies = np.zeros(table.shape)
        np.add.at(frequencies, tuple(rows[:, list(scope)].T), 1 / len(rows))
        np.testing.assert_allclose(table, frequencies, atol=2e-6)
    truth = naive_likelihood(found.model, rows)
    assert found.lower <= truth <= found.upper and found.upper - found.lower < 1e-10
    assert np.all(np.diff([step.log_likelihood for step in found.trace]) >= -CLOSE)


def test_parameters_of_a_chain_come_back():
    """All edges share a table; many rows drawn from a chain with known potentials, state by state."""
    rng, table = np.random.default_rng(0), np.array([[0.8, 0.0], [0.0, 0.4]])
    n, num = 8, 4000
    truth = cz.Model.from_arrays(np.zeros((n, 2)), [(i, i + 1) for i in range(n - 1)], [table] * (n - 1))
    rows = np.empty((num, n), dtype=int)
    configurations = np.array(list(all_configurations(truth.num_states)))
    weights = np.exp([truth.score(x) for x in configurations])
    rows = configurations[rng.choice(len(configurations), size=num, p=weights / weights.sum())]
    empty = cz.Model.from_arrays(np.zeros((n, 2)), truth.edges, np.zeros((n - 1, 2, 2)))
    found = cz.fit(empty, rows, parameters=cz.tied_parameters(empty, variables="none"))
    # what a shared table can say of a chain beside a constant: three numbers; here those with a 0 off the diagonal
    (a, b), (c, d) = found.parameters.reshape(2, 2)
    assert [a - (b + c) / 2, d - (b + c) / 2] == pytest.approx([0.8, 0.4], abs=0.1)
    assert found.log_likelihood >= np.mean([truth.score(x) for x in rows]) - cz.exact(truth).log_z


def test_hidden_values_climb_and_are_those_of_enumeration():
    """A mixture: one variable is never seen, the others depend on it."""
    rng = np.random.default_rng(1)
    hidden = rng.integers(2, size=60)
    seen = (rng.random((60, 3)) < np.where(hidden, 0.9, 0.2)[:, None]).astype(int)
    model = cz.Model(np.zeros((4, 2)), {(0, i): np.zeros((2, 2)) for i in (1, 2, 3)})
    rows = np.column_stack([np.full(60, -1), seen])
    found = cz.fit(model, rows, tol=1e-4)
    assert found.converged
    assert found.log_likelihood == pytest.approx(naive_likelihood(found.model, rows), abs=CLOSE)
    # better than variables that know nothing of each other, and no better than the frequencies of the rows themselves
    p = seen.mean(axis=0)
    apart = (p * np.log(p) + (1 - p) * np.log(1 - p)).sum()
    counts = np.unique(seen, axis=0, return_counts=True)[1] / 60
    assert apart + 0.05 < found.log_likelihood <= (counts * np.log(counts)).sum() + CLOSE
    assert np.ptp(found.model.pairwise[0, 1]) > 0.1
    again = cz.fit(model, rows, tol=1e-4)
    np.testing.assert_array_equal(again.parameters, found.parameters)


@pytest.mark.parametrize("method", ["trw", "mini_buckets", "mean_field", "bethe"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_bounds_hold_on_the_way_and_at_the_end(method, missing):
    rng = np.random.default_rng(3)
    model = cz.generators.complete(5, weights=(-2, 2), rng=1)
    rows = random_rows(rng, model, 12, missing)
    options = cz.options.MiniBucketsOptions(max_table=4) if method == "mini_buckets" else None
    ascent = objective(model, rows, method, options=options)
    for _ in range(3):
        x = rng.normal(size=ascent.num_parameters)
        at, weights = ascent.model_at(x), ascent.split(x)[1]
        truth = naive_likelihood(at, rows)
        for both in (False, True):
            point = ascent.objective.at(at, weights, both=both)
            assert point.lower <= truth <= point.upper
        assert np.isfinite(point.lower) and point.upper < 0
        if method in ("trw", "mini_buckets"):
            assert point.log_likelihood <= truth
    found = cz.fit(model, rows, method=method, options=options, l2=0.05, max_iter=6)
    truth = naive_likelihood(found.model, rows)
    assert found.lower <= truth <= found.upper and np.isfinite(found.lower)
    wanted = {"trw": "lower", "mini_buckets": "lower", "bethe": None, "mean_field": None if missing else "upper"}
    assert found.bound == wanted[method]
    if found.bound is not None:
        assert found.log_likelihood == getattr(found, found.bound)
    assert found.log_likelihood > ascent.objective.at(model, None).log_likelihood


def test_trw_learns_what_exact_learns_on_a_tree():
    rng = np.random.default_rng(0)
    model = cz.Model(np.zeros((4, 3)), {(0, 1): np.zeros((3, 3)), (1, 2): np.zeros((3, 3)), (1, 3): np.zeros((3, 3))})
    rows = random_rows(rng, model, 30)
    one, two = cz.fit(model, rows, l2=0.01), cz.fit(model, rows, method="trw", l2=0.01)
    assert one.converged and two.converged
    np.testing.assert_allclose(one.parameters, two.parameters, atol=2e-3)


def test_a_conditional_random_field_with_held_out_rows():
    rng = np.random.default_rng(2)
    n, num = 5, 60
    model = cz.Model.from_arrays(np.zeros((n, 2)), [(i, i + 1) for i in range(n - 1)], np.zeros((n - 1, 2, 2)))
    covariates = rng.normal(size=(num, n, 1))
    rows = (covariates[:, :, 0] + 0.3 * rng.normal(size=(num, n)) > 0).astype(int)
    found = cz.fit(
        model, rows[:40], inputs=covariates[:40], parameters=cz.tied_parameters(model, variables="all"), l2=0.01
    )
    assert found.converged and found.input_weights.shape == (1, 2)
    assert found.input_weights[0, 1] - found.input_weights[0, 0] > 1.0
    held_out = found.evaluate(rows[40:], inputs=covariates[40:])
    lanes = found.batch(covariates[40:])
    log_z = cz.exact(lanes).log_z
    by_hand = [lanes.lane(r).score(row) - log_z[r] for r, row in enumerate(rows[40:])]
    assert held_out.log_likelihood == pytest.approx(np.mean(by_hand), abs=CLOSE)
    assert held_out.lower <= np.mean(by_hand) <= held_out.upper and held_out.num_rows == 20
    bounds = found.evaluate(rows[40:], inputs=covariates[40:], method="trw")
    assert bounds.lower <= held_out.log_likelihood <= bounds.upper and np.isfinite([bounds.lower, bounds.upper]).all()
    assert "certified from" in repr(held_out) and repr(found).startswith("Fit(exact: log-likelihood ")
    assert repr(found).endswith(", converged)")
    short = cz.fit(found.model, rows[:40], max_iter=1, start=np.ones(len(cz.fit(found.model, rows[:40]).parameters)))
    assert "1 step, not converged, stopped by max_iter" in repr(short)
    with pytest.raises(cz.errors.OptionError, match="inputs: expected 1 covariates per variable, as in the fit"):
        found.evaluate(rows[40:])
    with pytest.raises(cz.errors.OptionError, match="inputs: expected 1 covariates"):
        found.batch(np.zeros((3, n, 2)))


def test_rows_come_in_many_forms():
    wanted = [[0, 1, -1], [1, -1, 0]]
    forms = [
        wanted,
        np.array(wanted),
        np.array([[0, 1, np.nan], [1, np.nan, 0]]),
        [["off", "on", None], ["on", None, "off"]],
        [{"a": "off", "b": 1}, {0: 1, "c": "off", "b": None}],
    ]
    for form in forms:
        assert as_rows(NAMED, form).tolist() == wanted


def test_spins_are_states_and_not_missing():
    """-1 is what a spin is called: two rows that differ have probability one half each at best."""
    spins = cz.Model([[0, 0]] * 3, {(0, 1): [[0, 0]] * 2, (1, 2): [[0, 0]] * 2}, state_names=[["-1", "1"]] * 3)
    wanted = [[0, 1, 1], [1, 1, 0]]
    said = [[-1, 1, 1], [1, 1, -1]]
    for form in (said, np.array(said, dtype=float), [[str(s) for s in row] for row in said]):
        assert as_rows(spins, form).tolist() == wanted
    assert as_rows(spins, [dict(enumerate(row)) for row in said]).tolist() == wanted
    assert as_rows(spins, [[np.nan, 1, -1], [None, -1, 1.0]]).tolist() == [[-1, 1, 0], [-1, 0, 1]]
    assert as_rows(spins, np.array([[np.nan, 1, -1]])).tolist() == [[-1, 1, 0]]
    assert cz.fit(spins, [[-1, -1, -1], [1, 1, 1]]).log_likelihood == pytest.approx(np.log(0.5), abs=1e-3)
    drawn = cz.sample(spins, 5, rng=0)
    assert as_rows(spins, drawn).tolist() == drawn.states.tolist()
    with pytest.raises(cz.errors.EvidenceError, match="row 0, variable 0: its states are named by numbers, -1, 1"):
        as_rows(spins, np.array([[0, 1, 1]]))
    tens = cz.Model([[0, 0, 0]], state_names=[["30", "10", "20"]])
    assert as_rows(tens, np.array([[10], [20], [-1], [30]], dtype=np.int64)).tolist() == [[1], [2], [-1], [0]]
    assert as_rows(tens, np.array([[10], [30]], dtype=np.uint8)).tolist() == [[1], [0]]
    for wrong in (0, 40, 10.5, -2):
        with pytest.raises(cz.errors.EvidenceError, match="its states are named by numbers"):
            as_rows(tens, np.array([[wrong]]))


def test_rows_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frames = [
        pandas.DataFrame({"c": [None, "off"], "a": ["off", "on"], "b": ["on", None]}),
        pandas.DataFrame({"c": [np.nan, 0], "a": [0, 1], "b": pandas.array([1, None], dtype="Int64")}),
    ]
    for frame in frames:
        assert as_rows(NAMED, frame).tolist() == [[0, 1, -1], [1, -1, 0]]
    assert as_rows(NAMED, pandas.DataFrame({"b": [1, 0]})).tolist() == [[-1, 1, -1], [-1, 0, -1]]
    spins = cz.Model([[0, 0]] * 2, names=["a", "b"], state_names=[["-1", "1"]] * 2)
    assert as_rows(spins, pandas.DataFrame({"b": [-1, 1, None], "a": [1, -1, -1]})).tolist() == [
        [1, 0],
        [0, 1],
        [0, -1],
    ]
    with pytest.raises(cz.errors.EvidenceError, match="data, column 'x': unknown variable 'x'"):
        as_rows(NAMED, pandas.DataFrame({"x": [1]}))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[0, 1], [0, 2]], "data, row 1, variable 1: expected a state from 0 to 1"),
        ([[0.5, 1.0]], "data, row 0, variable 0: expected a state from 0 to 1, .* found 0.5"),
        ([[0, 1, 0]], r"data: expected shape \(rows, 2\), .* found \(1, 3\)"),
        ([[0, "on"]], "data, row 0: unknown state 'on' of variable 1"),
        ([{0: 0}, {7: 1}], "data, row 1: unknown variable 7"),
        (np.zeros((0, 2)), "data: expected at least one row, found none"),
        ([[0, 1], [1, 0]], "data, row 1: the model gives it probability zero, and hard zeros stay hard zeros"),
        ([[0, 1], [1, 1], [1, -1]], "data, row 1: the model gives it probability zero"),
        ([[0, 1], [1, -1]], "data, row 1: the model gives it probability zero"),
    ],
)
def test_bad_rows_are_named(data, message):
    model = cz.Model(np.zeros((2, 2)), {(0, 1): [[0.0, 0.0], [-np.inf, -np.inf]]})
    with pytest.raises(cz.errors.EvidenceError, match=message):
        cz.fit(model, data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameters": np.zeros((2, 3))}, r"parameters: expected 8 columns, .* found shape \(2, 3\)"),
        ({"parameters": "some"}, "parameters: expected a matrix of features"),
        ({"parameters": np.full((1, 8), np.nan)}, "parameters: expected finite features"),
        ({"start": [1.0]}, r"start: expected 8 finite numbers, one per parameter, found shape \(1,\)"),
        ({"inputs": np.zeros((2, 3))}, r"inputs: expected shape \(2, 4\), .* found \(2, 3\)"),
        ({"inputs": np.full((2, 4), np.inf)}, "inputs: expected finite numbers"),
        ({"l2": -1}, "l2: expected a number >= 0"),
        ({"method": "exat"}, "unknown method 'exat'"),
        ({"options": cz.options.TRWOptions()}, "options: expected None or ExactOptions"),
        ({"time": -1}, "time: expected seconds >= 0"),
        ({"max_iter": 0}, "max_iter"),
        ({"rng": "a"}, "rng: expected a whole number"),
    ],
)
def test_bad_options_are_named(arguments, message):
    model = cz.Model(np.zeros((2, 2)), {(0, 1): np.zeros((2, 2))})
    with pytest.raises(cz.errors.OptionError, match=message):
        cz.fit(model, [[0, 1], [1, 1]], **arguments)


def test_tied_tables():
    model = cz.Model(
        [[0, 0], [0, 0], [0, 0, 0]],
        {(0, 1): np.zeros((2, 2)), (0, 2): np.zeros((2, 3)), (1, 2): np.zeros((2, 3))},
        factors=[((0, 1, 2), np.eye(12).reshape(12, 12)[0].reshape(2, 2, 3))],
    )
    assert cz.tied_parameters(model).shape == (7 + 4 + 6 + 12, 7 + 16 + 12)
    assert cz.tied_parameters(model, variables="all", edges=[0, -1, -1], factors="none").shape == (5 + 4, 35)
    shared = cz.tied_parameters(model, variables="none", edges=[-1, 3, 3], factors="none").toarray()
    np.testing.assert_array_equal(shared[:, 11:17], np.eye(6))
    np.testing.assert_array_equal(shared[:, 17:23], np.eye(6))
    assert shared.sum() == 12
    with pytest.raises(cz.errors.OptionError, match=r"edges: tables 0 and 1 .* of shapes \(2, 2\) and \(2, 3\)"):
        cz.tied_parameters(model, edges=[0, 0, 1])
    with pytest.raises(cz.errors.OptionError, match="edges: expected a whole number for each of 3 tables"):
        cz.tied_parameters(model, edges=[0, 1])
    with pytest.raises(cz.errors.OptionError, match='variables: expected "each", "all", "none"'):
        cz.tied_parameters(model, variables="some")


def test_limits_progress_and_nothing_at_all():
    model = cz.generators.grid(3, 3, rng=0)
    rows = random_rows(np.random.default_rng(0), model, 20)
    steps = []

    def listen(step):
        steps.append(step)
        if len(steps) == 3:
            raise StopIteration

    found = cz.fit(model, rows, progress=listen)
    assert found.stopped_by == "callback" and found.num_iter == 3 and not found.converged
    assert list(found.trace) == steps and np.isfinite(found.log_likelihood)
    found = cz.fit(model, rows, max_iter=2)
    assert (found.stopped_by, found.num_iter, found.converged) == ("max_iter", 2, False)
    none = cz.fit(model, rows, time=0.0)
    assert none.stopped_by == "time" and np.isnan(none.log_likelihood) and not none.converged
    assert (none.lower, none.upper) == (-np.inf, 0.0) and none.model == model and "stopped before" in none.note
    with pytest.raises(cz.errors.TooWideError):
        cz.fit(cz.generators.complete(40, rng=0), np.zeros((1, 40), dtype=int), memory="3MB")
    with pytest.raises(cz.errors.TooWideError, match="learning 180 parameters and potentials needs about"):
        cz.fit(model, rows, memory=1000)


def test_ctrl_c_returns_what_there_is():
    model = cz.generators.grid(3, 3, rng=0)
    rows = random_rows(np.random.default_rng(0), model, 20)
    found = cz.fit(model, rows, progress=lambda step: os.kill(os.getpid(), signal.SIGINT))
    assert found.stopped_by == "interrupt" and found.num_iter == 1 and found.log_likelihood < 0


@pytest.mark.parametrize("method", ["exact", "trw"])
def test_no_bound_is_spoilt_by_huge_potentials(method):
    model = cz.Model([[0, 1e15], [3e15, 0]], {(0, 1): [[1e15, 0], [0, -1e15]]})
    rows = np.array([[0, 1], [1, 0], [1, -1]])
    found = cz.fit(model, rows, method=method, max_iter=1)
    assert found.lower <= naive_likelihood(found.model, rows) <= found.upper


@pytest.mark.parametrize("row", [[0, 1], [-1, 1], [-1, -1]])
def test_where_z_is_zero_there_is_nothing_to_learn(row):
    model = cz.Model(np.zeros((2, 2)), {(0, 1): np.full((2, 2), -np.inf)})
    with pytest.raises(cz.errors.EvidenceError, match="data, row 0: the model gives it probability zero"):
        cz.fit(model, [row])


def test_threads_change_nothing():
    model = cz.generators.grid(3, 3, rng=0)
    rows = random_rows(np.random.default_rng(0), model, 12, 0.3)
    one, two = (cz.fit(model, rows, method="trw", l2=0.1, max_iter=15, threads=k) for k in (1, 2))
    np.testing.assert_array_equal(one.parameters, two.parameters)


@pytest.mark.parametrize("model", [cz.Model([]), cz.Model([[0.3]]), cz.Model([[0.0, -np.inf], [0.1, 0.2]])])
def test_small_things(model):
    rows = np.zeros((3, model.num_variables), dtype=int)
    found = cz.fit(model, rows, l2=0.1)
    assert found.converged and found.lower <= found.log_likelihood <= found.upper <= 0
    assert found.model.constant == model.constant


def test_the_constant_counts_for_nothing():
    tables = np.zeros((2, 2)), {(0, 1): np.eye(2)}
    rows = list(itertools.product(range(2), repeat=2))[:3]
    one, two = (cz.fit(cz.Model(*tables, constant=c), rows, l2=0.1) for c in (0.0, 1e15))
    np.testing.assert_array_equal(one.parameters, two.parameters)
    assert one.log_likelihood == two.log_likelihood and two.model.constant == 1e15


def test_rows_are_counted_by_the_clock(monkeypatch):
    """Many rows of a large model take long: the clock is looked at between blocks of them."""
    monkeypatch.setattr(likelihood, "LANE_ENTRIES", 1)
    model = cz.Model.from_binary([0.0, 0.0], [1.0], [(0, 1)])
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.int32)
    assert Cases(model, rows, None, Asked(5)).counts.tolist() == [2, 2, 2, 2, 1, 1, 1, 1]
    budget = Asked(3)
    with pytest.raises(Cancelled):
        _ = Cases(model, rows, None, budget).counts
    assert budget.asked == 3
