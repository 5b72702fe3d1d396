"""log Z as a differentiable function of JAX arrays: its gradients are marginals.

JAX is imported when a function of this module is called, and never before.
"""

from typing import Any, Unpack

import numpy as np

from clampz.approximations.registry import MethodKeywords
from clampz.errors import library
from clampz.interop.autodiff import LogZFunction
from clampz.model import Model
from clampz.numerics import Floats

Array = Any


def log_z(
    unary: Array | None,
    pairwise: Array | None,
    model: Model,
    method: str = "exact",
    factors: Array | None = None,
    **options: Unpack[MethodKeywords],
) -> Array:
    """log Z of a model with these potentials in place of its own, as an array that JAX differentiates.

    It works under `jax.jit`, `jax.grad` and `jax.vmap`, by a callback to the host.  Gradients are marginals of the
    method, as `clampz.torch.log_z` describes them, and there is no second derivative.

    Parameters
    ----------
    unary, pairwise, factors
        Log potentials laid out as `model.unary.flat` and so on, or (n, L), (m, L, L) where all variables have L states;
        with an axis in front of these for a batch of B models.  None for the model's own.  Without an axis of their own
        in front, all models of a batch share them, and are solved as the lanes of one batch where unary potentials
        alone differ.
    model
        Gives the graph, the constant, and the potentials that are None.
    method, options
        How log Z is computed: any of `clampz.methods()`, with its options by name.

    Returns
    -------
    Array
        (), or (B,) for a batch; computed in double precision, and of the potentials' own type.

    Raises
    ------
    MissingLibraryError
        Where JAX is not installed.
    ModelError
        Where an array has another shape than the model's potentials, or batches differ in size.
    OptionError
        Where an option is unknown or out of range.

    Examples
    --------
    The gradient of minus the log-likelihood of a configuration::

        def loss(unary):
            return clampz.jax.log_z(unary, None, model) - unary[jnp.arange(4), jnp.array([0, 1, 1, 0])].sum()

        jax.jit(jax.grad(loss))(jnp.zeros((4, 2)))
    """
    jnp = library("jax").numpy
    given = {"unary": unary, "pairwise": pairwise, "factors": factors}
    arrays = {name: jnp.asarray(array) for name, array in given.items() if array is not None}
    function = LogZFunction.of(model, method, options, {name: array.shape for name, array in arrays.items()})
    dtype = jnp.result_type(*arrays.values())
    if not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.result_type(float)
    # an axis of lanes everywhere, of one lane where it is shared: mapping adds axes in front of it
    rows = (array.reshape(-1, function.given[name][-1]).astype(dtype) for name, array in arrays.items())
    found = _differentiable(function)(*rows)
    return found if function.is_batch else found[0]


def _differentiable(function: LogZFunction) -> Any:
    """Return log Z (B,) as a differentiable function of tables (B, entries), or (1, entries) where lanes share them."""
    jax = library("jax")
    jnp = jax.numpy

    def call(rows: tuple[Array, ...], *, with_marginals: bool) -> Any:
        lanes = max(len(each) for each in rows)
        shapes = [(lanes,), *((lanes, each.shape[1]) for each in rows)] if with_marginals else [(lanes,)]
        results = tuple(jax.ShapeDtypeStruct(shape, rows[0].dtype) for shape in shapes)

        def on_host(*rows: Array) -> tuple[Floats, ...]:
            at, outer, dtype = _at(function, rows)
            names = function.given if with_marginals else ()
            marginals = (at.gradients(name, np.ones(len(at.log_z))).reshape(*outer, -1).astype(dtype) for name in names)
            return at.log_z.reshape(outer).astype(dtype), *marginals

        return jax.pure_callback(on_host, results, *rows, vmap_method="expand_dims")

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def log_z(*rows: Array) -> Array:
        return call(rows, with_marginals=False)[0]

    def forward(*rows: Array) -> tuple[Array, list[Array]]:
        found, *marginals = call(rows, with_marginals=True)
        return found, marginals

    def backward(marginals: list[Array], weights: Array) -> tuple[Array, ...]:
        # what does not count has no say, even where its marginals are nan
        each = (jnp.where(weights[:, None] == 0, 0, weights[:, None] * table) for table in marginals)
        return tuple(
            table.sum(axis=0, keepdims=True) if len(shape) == 1 else table
            for table, shape in zip(each, function.given.values(), strict=True)
        )

    log_z.defvjp(forward, backward)
    return log_z


def _at(function: LogZFunction, rows: tuple[Array, ...]) -> Any:
    """Return log Z at tables (..., B, entries), the axes before the entries, and the type of the tables.

    An axis has length one where tables are shared along it.
    """
    tables = [np.asarray(each, dtype=np.float64) for each in rows]
    outer = np.broadcast_shapes(*(each.shape[:-1] for each in tables))
    flat = [
        each.reshape(1, -1) if each.size == each.shape[-1] else np.broadcast_to(each, (*outer, each.shape[-1]))
        for each in tables
    ]
    return function.at([each.reshape(-1, each.shape[-1]) for each in flat]), outer, rows[0].dtype
