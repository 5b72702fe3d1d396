"""The memory that a call was given is kept, on models that are large for it; or it is refused at once."""

import tracemalloc

import numpy as np
import pytest

import clampz as cz
from clampz.bounding.tree.frontier import bytes_needed
from clampz.exact_inference.scopes import Scopes, least_bytes
from clampz.model.pairwise_equivalent import Equivalent

# Beyond the memory given: what NumPy's own temporaries, threads and results take.
MORE, SPARE = 1.2, 2_000_000

CALLS = {
    "solve": cz.solve,
    "bound": cz.bound,
    "exact": cz.exact,
    "mini_buckets": cz.mini_buckets,
    "bound_marginals": cz.bound_marginals,
    "mode": cz.mode,
    "probability": lambda model, **limits: cz.probability(model, {0: 0, 1: 0}, **limits),
}


def factors() -> cz.Model:
    rng, n = np.random.default_rng(0), 4000
    scopes = (sorted(rng.choice(n, size=6, replace=False).tolist()) for _ in range(8000))
    return cz.Model.from_factors([2] * n, [(tuple(scope), rng.normal(size=(2,) * 6)) for scope in scopes])


def star() -> cz.Model:
    rng, n = np.random.default_rng(0), 20_000
    edges = np.stack([np.zeros(n - 1, dtype=np.int64), np.arange(1, n)], axis=1)
    return cz.Model.from_binary(rng.normal(size=n), rng.normal(size=n - 1), edges)


MODELS = {
    "grid": lambda: cz.generators.grid(150, 150, weights=(-4, 4), rng=0),
    "factors": factors,
    "star": star,
    "labels": lambda: cz.generators.grid(12, 12, labels=30, potentials="table", rng=0),
}


def answered(call, model, memory) -> None:
    """A call within its limits, which may refuse the model."""
    try:
        CALLS[call](model, time=0.4, memory=memory)
    except (cz.errors.OptionError, cz.errors.TooWideError) as error:
        assert "at least" in str(error)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("call", CALLS)
def test_calls_keep_to_the_memory(call, name):
    """Twice what a search needs at the least, which is too little for most methods."""
    memory = 2 * bytes_needed(MODELS[name]())
    answered(call, MODELS[name](), memory)  # loads kernels, which takes memory of its own
    model = MODELS[name]()
    tracemalloc.start()
    try:
        answered(call, model, memory)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken <= MORE * memory + SPARE


@pytest.mark.parametrize("call", ["solve", "bound", "exact", "bound_marginals", "probability"])
def test_what_does_not_fit_is_refused_before_anything_is_laid_out(call, monkeypatch):
    model = factors()
    for laid_out in (Scopes, Equivalent):
        monkeypatch.setattr(laid_out, "of", lambda *_: pytest.fail("work"))
    least = least_bytes(model) if call == "exact" else bytes_needed(model)
    with pytest.raises((cz.errors.OptionError, cz.errors.TooWideError), match=f"at least {least:,} bytes"):
        CALLS[call](model, memory=least // 2)
