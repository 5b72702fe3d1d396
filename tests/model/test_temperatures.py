"""Lanes at inverse temperatures of their own: every method, against itself on the scaled model and against
enumeration."""

from dataclasses import replace

import numpy as np
import pytest
from random_factors import random_factors
from random_models import random_binary, random_edges, random_tables
from thermodynamics import table_of_scores, thermodynamics

import clampz as cz
from clampz.errors import OptionError

METHODS = cz.methods()
BETAS = np.array([1.0, 0.0, 2.0, 0.3])
EXACT, CONVERGED = 1e-10, 1e-6


def models():
    rng = np.random.default_rng(5)
    yield "mixed", random_binary(rng, 7, random_edges(rng, 7, 0.6))
    yield "attractive", cz.generators.grid(2, 3, weights=(0, 2), rng=1)
    yield "labels and zeros", random_tables(rng, [3, 2, 4, 2], [(0, 1), (1, 2), (2, 3), (0, 3)], zeros=0.3)
    yield "factors", random_factors(np.random.default_rng(8), zeros=0.15)
    yield "one variable", cz.Model([[0.0, 1.0, -np.inf]], constant=-3.0)


MODELS = dict(models())


def explicitly(model, beta):
    """The model at beta, made anew from its tables."""

    def times(table):
        return np.where(np.isneginf(table), -np.inf, beta * np.where(np.isneginf(table), 0.0, table))

    return cz.Model(
        [times(table) for table in model.unary],
        {pair: times(model.pairwise[pair]) for pair in model.pairwise},
        factors=[(scope, times(table)) for scope, table in model.factors],
        constant=beta * model.constant,
    )


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_a_lane_at_beta_is_what_the_method_says_of_the_scaled_model(name, kind):
    model, method = MODELS[kind], METHODS[name]
    found = method(model, beta=BETAS)
    assert len(found) == len(BETAS)
    assert found.beta.tolist() == BETAS.tolist()
    for lane, beta in zip(found, BETAS, strict=True):
        alone = method(explicitly(model, beta))
        charged = cz.Batch.of(model).sizes.rounding(beta)
        assert abs(lane.log_z - alone.log_z) <= charged + EXACT
        assert lane.lower <= alone.lower
        assert lane.upper >= alone.upper
        assert (lane.converged, lane.num_iter, lane.beta) == (alone.converged, alone.num_iter, beta)
        for ours, other in (
            (lane.marginals.flat, alone.marginals.flat),
            (lane.pairwise_marginals.flat, alone.pairwise_marginals.flat),
            (lane.factor_marginals.flat, alone.factor_marginals.flat),
        ):
            assert np.allclose(ours, other, rtol=0, atol=EXACT)
        truth = thermodynamics(model, beta)[0]
        assert lane.lower - 1e-15 * abs(truth) <= truth <= lane.upper + 1e-15 * abs(truth)
    if name == "exact":
        zero = int(np.flatnonzero(BETAS == 0.0)[0])
        count = np.count_nonzero(table_of_scores(model) > -np.inf)
        assert abs(found.log_z[zero] - np.log(count)) < EXACT


@pytest.mark.parametrize("kind", MODELS)
def test_thermodynamics_of_exact_are_those_of_enumeration(kind):
    model = MODELS[kind]
    found = cz.exact(model, beta=BETAS)
    truth = np.array([thermodynamics(model, beta) for beta in BETAS])
    assert np.allclose(found.log_z, truth[:, 0], rtol=0, atol=EXACT)
    assert np.allclose(found.energy, truth[:, 1], rtol=0, atol=EXACT)
    assert np.allclose(found.entropy, truth[:, 2], rtol=0, atol=EXACT)
    assert np.allclose(found.heat_capacity, truth[:, 3], rtol=CONVERGED, atol=CONVERGED)
    lane = found[2]
    assert (lane.energy, lane.entropy) == (found.energy[2], found.entropy[2])
    assert abs(lane.heat_capacity - truth[2, 3]) <= CONVERGED * (1 + truth[2, 3])


@pytest.mark.parametrize("name", ["mean_field", "bethe", "trw"])
def test_energy_and_heat_capacity_are_derivatives_of_the_method_s_own_value(name):
    model = cz.generators.grid(3, 3, theta=(-1, 1), weights=(-1, 1), rng=3)
    method, beta, h = METHODS[name], 0.8, 1e-2
    fine = {"tol": 1e-18 if name == "mean_field" else 1e-10}
    low, here, high = (method(model, beta=beta + d, **fine) for d in (-h, 0.0, h))
    slope, bend = (high.value - low.value) / (2 * h), (high.value - 2 * here.value + low.value) / h**2
    assert abs(here.energy + slope) < 1e-3
    assert abs(here.heat_capacity - beta**2 * bend) < 1e-2 * (1 + abs(bend))
    assert here.heat_capacity > 0.1


def test_where_regions_are_exact_so_are_their_thermodynamics():
    model = MODELS["factors"]
    found = cz.mini_buckets(model, beta=0.7)
    truth = thermodynamics(model, 0.7)
    assert np.allclose([found.log_z, found.energy, found.entropy], truth[:3], rtol=0, atol=EXACT)
    assert abs(found.heat_capacity - truth[3]) < 1e-4 * (1 + truth[3])


def test_regions_of_many_betas_keep_no_tables():
    found = cz.mini_buckets(MODELS["mixed"], beta=[0.3, 0.7], max_table=8)
    assert np.isfinite(found.energy).all()
    for k in range(2):
        state, lane = found.state.lanes[k]
        assert not {"tables_above", "tables_below"} & state.lanes[lane].layout.__dict__.keys()
        assert abs(found.energy[k] - cz.mini_buckets(MODELS["mixed"], beta=found.beta[k], max_table=8).energy) < EXACT


def test_evidence_and_betas_make_lanes_together():
    model = MODELS["labels and zeros"]
    sets = [{0: 0}, {2: 0, 3: 0}, {}]
    each = cz.exact(model, evidence=sets, beta=[0.5, 2.0, 1.0])
    for lane, known, beta in zip(each, sets, (0.5, 2.0, 1.0), strict=True):
        truth = thermodynamics(model, beta, known)
        assert np.allclose([lane.log_z, lane.energy, lane.entropy], truth[:3], rtol=0, atol=EXACT)
        assert abs(lane.heat_capacity - truth[3]) <= CONVERGED * (1 + truth[3])
    for found in (cz.exact(model, evidence=sets, beta=0.5), cz.exact(model, evidence=sets, beta=[0.5])):
        assert np.allclose(found.log_z, [thermodynamics(model, 0.5, known)[0] for known in sets], rtol=0, atol=EXACT)
    one = cz.exact(model, evidence={0: 0}, beta=[0.5, 2.0])
    assert np.allclose(one.log_z, [thermodynamics(model, b, {0: 0})[0] for b in (0.5, 2.0)], rtol=0, atol=EXACT)
    assert isinstance(cz.exact(model, evidence={0: 0}, beta=0.5), cz.results.Estimate)
    assert isinstance(cz.exact(model, beta=[0.5]), cz.results.Estimates)
    with pytest.raises(OptionError, match="one for each of 3 lanes, found 2"):
        cz.exact(model, evidence=sets, beta=[0.5, 1.0])


def test_a_batch_with_potentials_of_its_own_at_temperatures():
    model = MODELS["mixed"]
    unary = np.stack([model.unary.flat, 2.0 * model.unary.flat], axis=1)
    batch = cz.Batch(model, unary)
    found = cz.exact(batch, beta=[0.5, 1.5])
    for k, beta in enumerate((0.5, 1.5)):
        truth = thermodynamics(batch.lane(k), beta)
        assert np.allclose([found.log_z[k], found.energy[k]], truth[:2], rtol=0, atol=EXACT)
        assert abs(cz.exact(batch.at([0.5, 1.5]).lane(k)).log_z - truth[0]) < EXACT


@pytest.mark.parametrize("name", METHODS)
def test_lanes_do_not_depend_on_each_other_nor_on_threads(name):
    model, method = MODELS["mixed"], METHODS[name]
    many = method(model, beta=[0.3, 1.0, 0.5, 2.0], threads=2)
    again = method(model, beta=[2.0, 0.3], threads=1)
    assert many.log_z[[3, 0]].tolist() == again.log_z.tolist()
    twice = method(model, beta=[0.3, 2.0, 0.3])
    assert np.allclose(twice.log_z, many.log_z[[0, 3, 0]], rtol=0, atol=EXACT)
    taken = many.take(np.array([3, 1]))
    assert taken.energy.tolist() == many.energy[[3, 1]].tolist()
    joined = taken.join([many])
    assert joined.beta.tolist() == [2.0, 1.0, 0.3, 1.0, 0.5, 2.0]
    assert joined.energy.tolist() == [*taken.energy, *many.energy]


@pytest.mark.parametrize("name", ["mean_field", "bethe", "trw", "mini_buckets"])
def test_starts_are_given_to_the_lanes_they_are_for(name):
    model, method = MODELS["mixed"], METHODS[name]
    first = method(model, beta=[0.5, 1.5])
    for start in (first, first[0], first.marginals_flat, first.marginals_flat[:, 0]):
        found = method(model, beta=[0.5, 1.5], start=start)
        for k, beta in enumerate((0.5, 1.5)):
            truth = thermodynamics(model, beta)[0]
            assert found.lower[k] - EXACT <= truth <= found.upper[k] + EXACT
            assert abs(found.log_z[k] - first.log_z[k]) < 0.05
    with pytest.raises(OptionError, match="start"):
        method(model, beta=[0.5, 1.0, 1.5], start=first)


def test_the_scaled_model_shares_the_graph_and_keeps_what_is_impossible():
    model = cz.Model([[0.0, -np.inf, 2.0], [0.0, 1.0]], {(0, 1): [[0, 1], [2, 3], [-np.inf, 4]]}, constant=7.0)
    scaled = model.at(0.0)
    assert scaled.topology is model.topology
    assert scaled.unary[0].tolist() == [0.0, -np.inf, 0.0]
    assert scaled.pairwise[0, 1].tolist() == [[0, 0], [0, 0], [-np.inf, 0]]
    assert scaled.constant == 0.0
    assert model.at(2.0) == explicitly(model, 2.0)


def test_no_configuration_possible_at_any_temperature():
    model = cz.Model([[0.0, 0.0], [0.0, 0.0]], {(0, 1): np.full((2, 2), -np.inf)})
    found = cz.exact(model, beta=[0.0, 1.0])
    assert found.log_z.tolist() == [-np.inf, -np.inf]
    assert np.isnan(found.energy).all()


def test_the_empty_model():
    found = cz.exact(cz.Model([], constant=3.0), beta=[0.0, 0.5])
    assert np.allclose(found.log_z, [0.0, 1.5])
    assert found.energy.tolist() == [-3.0, -3.0]
    assert np.allclose(found.heat_capacity, 0.0)


@pytest.mark.parametrize("beta", [-1.0, np.nan, np.inf, [0.5, -0.1], [[0.5]], [], "warm", [0.5, None]])
def test_what_is_no_inverse_temperature_is_refused(beta):
    for name in METHODS:
        with pytest.raises(OptionError, match="beta"):
            METHODS[name](MODELS["mixed"], beta=beta)


def test_potentials_may_not_grow_too_large():
    model = cz.Model([[0.0, 1e15]])
    assert abs(cz.exact(model, beta=1e4).log_z - 1e19) <= 1e4
    with pytest.raises(OptionError, match=r"expected at most 100000 for potentials of up to 1e\+15"):
        cz.exact(model, beta=1e6)
    with pytest.raises(OptionError, match="beta: expected one number"):
        model.at([1.0, 2.0])


def test_thermodynamics_need_a_temperature_unless_they_are_exact():
    with pytest.raises(OptionError, match="beta=1"):
        _ = cz.bethe(MODELS["mixed"]).energy
    assert cz.exact(MODELS["mixed"]).energy == cz.exact(MODELS["mixed"], beta=1.0).energy


def test_the_run_ends_with_its_time_and_its_callback():
    model, seen = MODELS["mixed"], []
    found = cz.trw(cz.generators.grid(40, 40, weights=(-9, 9), rng=0), beta=[0.5, 1.0], time=0.0)
    assert set(found.stopped_by) == {"time"}
    truth_holds = found.upper >= found.lower
    assert truth_holds.all()

    def stop(progress):
        seen.append(progress)
        raise StopIteration

    ended = cz.exact(model, beta=[0.5, 1.0, 2.0], progress=stop)
    assert [p.num_lanes for p in seen] == [3]
    assert np.isfinite(ended.log_z[0])
    finished = []
    cz.exact(model, beta=[0.5, 1.0], progress=lambda progress: finished.append(progress.num_finished))
    assert finished == [1, 2]


def test_rounding_of_the_scaled_potentials_is_charged():
    rng = np.random.default_rng(0)
    model = random_binary(rng, 6, random_edges(rng, 6, 0.8), scale=1e12)
    beta = 0.1 + 1e-12
    found = cz.exact(model, beta=beta)
    plain = cz.exact(model.at(beta))
    assert found.upper - plain.upper >= 0.5 * np.finfo(float).eps * beta * 1e12
    assert cz.Batch.of(model).sizes.rounding(0.25) == 0.0
    truth = thermodynamics(model, np.longdouble(beta))[0]
    assert found.lower <= truth <= found.upper
    # a lane's own potentials are charged for, not the model's
    large = cz.exact(cz.Batch(cz.Model([[0.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 1e12]])), beta=beta)
    assert large.upper[1] - large.lower[1] >= np.finfo(float).eps * beta * 1e12
    assert replace(found, batch=None).beta == 1.0
