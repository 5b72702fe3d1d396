"""The one signature of the methods, as users see it."""

import inspect
import pydoc
from dataclasses import fields

import numpy as np
import pytest

import clampz as cz
from clampz.model.lane_memory import PER_ENTRY, bytes_of_lanes, lanes_that_fit

METHODS = cz.methods()


@pytest.mark.parametrize("name", METHODS)
def test_the_signature_is_that_of_the_call(name):
    method = METHODS[name]
    parameters = inspect.signature(method).parameters
    options = {field.name: field.default for field in fields(method.options_type)}
    assert list(parameters) == ["model", "evidence", "beta", "start", "rng", "progress", "options", *options]
    assert {name: parameters[name].default for name in options} == options
    inspect.signature(method).bind(None, evidence={}, **options)


@pytest.mark.parametrize("name", METHODS)
def test_help_shows_the_call_and_every_parameter(name):
    method = METHODS[name]
    text = pydoc.plain(pydoc.render_doc(method))
    call = f"{name}{inspect.signature(method)}"
    assert "".join(call.split()) in "".join(text.split())  # from Python 3.13 on a line for each parameter
    for internal in ("batch,", "watch", "OptionsT", "weights: "):
        assert internal not in call
    lines = [line.strip() for line in text.splitlines()]
    for parameter in inspect.signature(method).parameters:
        assert lines.count(parameter) == 1
    assert text.index("Parameters") < text.index(">>> ")
    assert inspect.getdoc(method).startswith(inspect.getdoc(method.__wrapped__).splitlines()[0])


def test_a_method_of_a_class_is_still_the_method():
    class Holder:
        solve = cz.trw

    assert Holder().solve is cz.trw


def test_edge_weights_are_no_option():
    model = cz.generators.cycle(4, rng=0)
    weights = cz.method.ForestWeights(cz.trw(model).state.rho)
    with pytest.raises(cz.errors.OptionError, match="edge_weights"):
        cz.trw(model, edge_weights=weights)


def test_as_many_lanes_fit_as_are_charged_for():
    rng = np.random.default_rng(0)
    larger = cz.Model.from_factors([2, 3, 2, 2], [((0, 1, 2), rng.normal(size=(2, 3, 2))), ((2, 3), np.eye(2))])
    for model in (cz.generators.grid(5, 5, rng=0), cz.generators.grid(5, 5, labels=3, rng=0), larger):
        for room in (10**5, 10**6, 10**7):
            count = lanes_that_fit(model, room)
            assert bytes_of_lanes(model, count) <= room < bytes_of_lanes(model, count + 1)
            assert cz.bethe.fits(model, room, count) and not cz.bethe.fits(model, room, count + 1)
        assert lanes_that_fit(model, 0) == 0


def test_tables_are_charged_for_once_and_factors_as_they_are_unless_they_have_zeros():
    labels = cz.generators.grid(5, 5, labels=9, rng=0)
    assert bytes_of_lanes(labels, 2) < 2 * bytes_of_lanes(labels)
    assert bytes_of_lanes(labels) > 8 * PER_ENTRY * len(labels.pairwise.flat)
    soft = np.random.default_rng(0).normal(size=(2,) * 6)
    hard = np.where(np.arange(64).reshape(soft.shape) == 5, -np.inf, soft)
    one, other = (cz.Model.from_factors([2] * 6, [(tuple(range(6)), table)]) for table in (soft, hard))
    assert bytes_of_lanes(one) == bytes_of_lanes(other)
    soft_alone, hard_alone = bytes_of_lanes(one, as_factors=True), bytes_of_lanes(other, as_factors=True)
    assert 5 * soft_alone < hard_alone < bytes_of_lanes(one)
