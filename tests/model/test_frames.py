"""Results as frames of pandas and datasets of xarray: rows, names, and what is said where these are not installed."""

import sys

import numpy as np
import pandas as pd
import pytest

import clampz as cz

NAMED = cz.Model(
    [[0.0, -1.0], [0.0, 0.0], [0.0, 0.0, 0.0]],
    {("rain", "sprinkler"): [[0, 1], [0, -3]], ("rain", "grass"): [[1, 0, 0], [-2, 0, 2]]},
    names=["rain", "sprinkler", "grass"],
    state_names=[["no", "yes"], ["off", "on"], ["dry", "damp", "wet"]],
)
PLAIN = cz.generators.cycle(4, rng=0)


def looked_up(frame, column="probability", **where):
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return float(frame[column].item())


def test_marginals_have_a_row_for_each_state():
    found = cz.exact(NAMED)
    frame = found.to_frame()
    assert list(frame.columns) == ["variable", "state", "probability"] and len(frame) == 7
    assert looked_up(frame, variable="grass", state="wet") == found.marginal("grass")[2]
    frame = cz.bethe(PLAIN).to_frame()
    assert frame["variable"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3] and frame["state"].tolist() == [0, 1] * 4


def test_marginals_of_edges_have_a_row_for_each_entry():
    found = cz.solve(NAMED)
    frame = found.to_frame("edges")
    assert len(frame) == 10
    where = {"variable": "rain", "other": "grass", "state": "yes", "other_state": "damp"}
    assert looked_up(frame, **where) == found.pairwise_marginals["rain", "grass"][1, 1]
    assert set(cz.exact(PLAIN).to_frame("edges")["other"]) == {1, 2, 3}
    with pytest.raises(cz.errors.OptionError, match='of: expected "variables" or "edges"'):
        found.to_frame("lanes")


def test_marginals_by_sampling_have_their_errors():
    model = cz.generators.complete(6, rng=0)
    found = cz.solve(model)
    errors = model.unary.with_flat(np.linspace(0.0, 0.1, 12))
    found = cz.results.Solution(**{**vars(found), "marginal_errors": errors})
    assert found.to_frame()["standard_error"].tolist() == errors.flat.tolist()


def test_steps_of_a_clamping():
    found = cz.clamp(NAMED, "trw", variables=["grass", "rain"])
    frame = found.to_frame()
    assert frame.index.name == "clamps" and frame["variable"].tolist()[1:] == ["grass", "rain"]
    assert pd.isna(frame["variable"][0])
    assert frame["log_z"].tolist() == [step.log_z for step in found.steps]
    assert len(found.to_frame("variables")) == 7
    frame = cz.clamp(PLAIN, "mf", variables=[2]).to_frame()
    assert frame["variable"].dtype == "Int64" and frame["variable"][1] == 2


def test_lanes():
    found = cz.exact(NAMED, evidence=[{}, {"grass": "wet"}], beta=[1.0, 2.0])
    frame = found.to_frame()
    assert frame.index.name == "lane" and frame["beta"].tolist() == [1.0, 2.0]
    assert frame["log_z"].tolist() == found.log_z.tolist() and frame["stopped_by"].tolist() == ["tol"] * 2
    assert "beta" not in cz.trw(PLAIN, evidence=[{}, {0: 1}]).to_frame()


def test_lanes_of_xarray_are_found_by_name():
    found = cz.exact(NAMED, evidence=[{}, {"grass": "wet"}], beta=[1.0, 2.0])
    data = found.to_xarray()
    assert data.log_z.dims == ("lane",) and data.beta.values.tolist() == [1.0, 2.0]
    assert data.attrs == {"method": "exact", "bound": "exact"}
    np.testing.assert_array_equal(
        data.marginals.sel(variable="rain").values, [lane["rain"] for lane in found.marginals]
    )
    assert float(data.marginals.sel(lane=1, variable="grass", state="wet")) == 1.0
    mixed = cz.generators.grid(3, 3, weights=(-6, 6), rng=0)
    plain = cz.bethe(mixed, evidence=[{}, {0: 1}]).to_xarray()
    assert plain.attrs["bound"] == "none" and "beta" not in plain.coords
    assert float(plain.marginals.sel(lane=1, variable=0, state=1)) == pytest.approx(1.0, abs=1e-14)
    assert plain.marginals.unstack("entry").shape == (2, 9, 2)


def test_a_sweep():
    found = cz.sweep(NAMED, [0.0, 0.5])
    assert found.to_frame()["upper"].tolist() == found.upper.tolist()
    data = found.to_xarray()
    assert float(data.log_z.sel(beta=0.5)) == found.log_z[1] and data.by.values.tolist() == ["exact"] * 2


def test_intervals_have_a_row_for_each_state_that_was_asked_for():
    found = cz.bound_marginals(NAMED, ["grass", "rain"])
    frame = found.to_frame()
    assert frame["variable"].tolist() == ["grass"] * 3 + ["rain"] * 2
    assert frame["state"].tolist() == ["dry", "damp", "wet", "no", "yes"]
    assert looked_up(frame, "upper", variable="rain", state="yes") == found.interval("rain")[1, 1]
    np.testing.assert_array_equal(found.lower["grass"], found.lower[2])


def test_the_ways_of_a_bracket_and_of_a_fit():
    bracket = cz.bound(PLAIN)
    assert [tuple(row) for row in bracket.to_frame().itertuples(index=False)] == list(bracket.trace)
    fit = cz.fit(PLAIN, [[0, 0, 1, 1], [0, 1, 1, 1], [1, 0, 0, 0]], l2=0.1)
    frame = fit.to_frame()
    assert frame["log_likelihood"].tolist() == [step.log_likelihood for step in fit.trace] and len(frame) > 1
    empty = cz.results.Fit(**{**vars(fit), "trace": ()}).to_frame()
    assert list(empty.columns) == list(frame.columns) and not len(empty)


def test_configurations():
    found = cz.mode(NAMED, num_best=2)
    frame = found.to_frame()
    assert frame.drop(columns="score").to_dict("records") == found.configurations
    assert frame["score"].tolist() == [one.score for one in found.best]
    none = cz.Model([[0.0, 0.0]] * 2, {(0, 1): np.full((2, 2), -np.inf)})
    assert cz.mode(none).to_frame().shape == (0, 3)
    weighted = cz.sample(NAMED, 3, method="weighted").to_frame()
    assert list(weighted.columns) == ["rain", "sprinkler", "grass", "log_weight"]


def test_of_a_model_without_variables_there_is_one_configuration():
    frame = cz.mode(cz.Model([], constant=2.0)).to_frame()
    assert frame.to_dict("list") == {"score": [2.0]}


def test_scores():
    frame = cz.scores(NAMED, ["maxW0", "Mpower"]).to_frame()
    assert list(frame.columns) == ["maxW0", "Mpower"] and frame.index.tolist() == ["rain", "sprinkler", "grass"]
    assert frame["maxW0"].tolist() == cz.scores(NAMED, "maxW0").tolist()


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("pandas", lambda: cz.exact(PLAIN).to_frame()),
        ("pandas", lambda: cz.exact(PLAIN, evidence=[{}]).to_frame()),
        ("pandas", lambda: cz.bound(PLAIN).to_frame()),
        ("pandas", lambda: cz.scores(PLAIN, ["maxW"]).to_frame()),
        ("pandas", lambda: cz.sample(PLAIN, 2).to_frame()),
        ("xarray", lambda: cz.exact(PLAIN, evidence=[{}]).to_xarray()),
        ("xarray", lambda: cz.sweep(PLAIN, [1.0]).to_xarray()),
    ],
)
def test_a_missing_library_is_named(package, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(cz.errors.MissingLibraryError, match=f"pip install {package}"):
        call()
