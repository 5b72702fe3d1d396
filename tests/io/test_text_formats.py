"""What both formats have in common: writing and reading is the identity, and half a file is an error."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from model_files import FG, UAI
from strategies import EXACT, close, configurations, finite_or_hard, models

from clampz import io
from clampz.errors import FormatError
from clampz.model import Model

pytestmark = pytest.mark.nojit

# The numbers and words of a file of each format.
TOKENS = {"model.uai": UAI.split(), "model.fg": re.sub("#.*", "", FG).split()}


@pytest.mark.parametrize("name", ["model.uai", "model.uai.gz", "model.fg", "model.fg.gz"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=models(elements=finite_or_hard))
def test_write_then_read_is_the_identity(tmp_path, name, model):
    """Up to the constant, which is added to the table of the first variable."""
    io.write(model, tmp_path / name)
    again = io.read(tmp_path / name)
    assert np.array_equal(again.num_states, model.num_states)
    assert np.array_equal(again.edges, model.edges)
    assert again.names is None and again.constant == 0
    unary = model.unary.flat.copy()
    unary[: model.num_states[0]] += model.constant
    for ours, theirs in [(unary, again.unary.flat), (model.pairwise.flat, again.pairwise.flat)]:
        assert np.array_equal(np.isinf(ours), np.isinf(theirs))
        assert np.allclose(ours, theirs, rtol=0, atol=EXACT)
    assert [path.name for path in tmp_path.iterdir() if path.name == name or path.name.startswith(".")] == [name]


@pytest.mark.parametrize("name", ["model.uai", "model.fg.gz"])
@pytest.mark.parametrize("seed", range(10))
def test_larger_factors_are_written_and_read(tmp_path, name, seed):
    model = factor_model(seed)
    assert model.factors
    io.write(model, tmp_path / name)
    again = io.read(tmp_path / name)
    assert [scope for scope, _ in again.factors] == [scope for scope, _ in model.factors]
    for ours, theirs in zip(model.factors, again.factors, strict=True):
        assert np.allclose(np.exp(ours.table), np.exp(theirs.table), rtol=EXACT, atol=0)
    for x in configurations(model):
        assert close(again.score(x), model.score(x))


def factor_model(seed, hard=True):
    """Factors of one to five variables, in any order."""
    rng = np.random.default_rng(seed)
    num_states = rng.integers(1, 4, size=6)
    factors = []
    for arity in (1, 2, 2, 3, 4, 5):
        scope = rng.permutation(6)[:arity]
        table = rng.normal(size=num_states[scope])
        table[rng.random(table.shape) < 0.1 * hard] = -np.inf
        factors.append((scope, table))
    return Model.from_factors(num_states, factors, constant=0.5)


@pytest.mark.parametrize("name", TOKENS)
def test_every_truncation_is_an_error_that_names_the_line(read, name):
    for length in range(len(TOKENS[name])):
        with pytest.raises(FormatError, match=rf"{name}, line \d+(, factor \d+)?: expected .*, found"):
            read(" ".join(TOKENS[name][:length]), name)


@pytest.mark.parametrize("name", TOKENS)
def test_every_token_replaced_by_a_word_is_an_error_that_shows_it(read, name):
    tokens = TOKENS[name]
    for k in range(len(tokens)):
        with pytest.raises(FormatError, match=rf"{name}, line {k + 1}(, factor \d+)?: expected .*'spam'"):
            read("\n".join([*tokens[:k], "spam", *tokens[k + 1 :]]), name)
