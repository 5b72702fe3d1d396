"""The one signature of the methods, as users see it."""

import inspect
import pydoc
from dataclasses import fields

import pytest

import clampz as cz

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
    weights = cz.signature.ForestWeights(cz.trw(model).state.rho)
    with pytest.raises(cz.OptionError, match="edge_weights"):
        cz.trw(model, edge_weights=weights)
