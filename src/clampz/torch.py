"""log Z as a function that PyTorch differentiates: potentials are tensors, marginals their gradients.

PyTorch is imported when a function of this module is called, and never before.
"""

from functools import cache
from typing import Any

import numpy as np

from clampz.approximations.registry import method_named
from clampz.errors import ModelError, OptionError, library
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.checks import as_log_potentials
from clampz.model.results import Estimates
from clampz.numerics import Floats
from clampz.options import Options
from clampz.signature import Approximation

Tensor = Any


def log_z(
    unary: Tensor | None,
    pairwise: Tensor | None,
    model: Model,
    method: str = "exact",
    factors: Tensor | None = None,
    **options: Any,
) -> Tensor:
    """log Z of a model with these potentials in place of its own, as a tensor whose gradients are marginals.

    With "exact" they are the derivatives of log Z.  With "trw", "regions" and "mean_field" they are those of the bound,
    and with "bethe" those of its value, where the method has converged: there its own variables are at an optimum, and
    only the potentials count.  Where it has not, they are the marginals at the point reached; a smaller `tol` brings
    them nearer.  The gradient at a hard zero is 0, and nan where Z = 0.  There is no second derivative.

    Parameters
    ----------
    unary
        Log potentials laid out as `model.unary.flat`, (S,), or (n, L) where all variables have L states; with an axis
        in front of these for a batch of B models.  None for the model's own.
    pairwise, factors
        Likewise as `model.pairwise.flat`, (P,), or (m, L, L), and as `model.factors.flat`.  Without an axis of their
        own in front, all models of a batch share them and are solved as the lanes of one batch, which is quicker.
    model
        Gives the graph, the constant, and the potentials that are None.
    method, options
        How log Z is computed: any of `clampz.methods()`, with its options by name.

    Returns
    -------
    Tensor
        (), or (B,) for a batch; computed in double precision, and of the potentials' own type and device.

    Raises
    ------
    MissingLibraryError
        Where PyTorch is not installed.
    ModelError
        Where a tensor has another shape than the model's potentials, or batches differ in size.
    OptionError
        Where an option is unknown or out of range.

    Examples
    --------
    Minus the log-likelihood of a configuration, ready for an optimiser::

        unary = torch.zeros(4, 2, requires_grad=True)
        loss = clampz.torch.log_z(unary, None, model) - unary[range(4), [0, 1, 1, 0]].sum()
        loss.backward()
    """
    approximation = method_named(method)
    chosen = approximation.options(None, options)
    given = [(unary, "unary"), (pairwise, "pairwise"), (factors, "factors")]
    flats = [_laid_out(model, tensor, name) for tensor, name in given if tensor is not None]
    if not flats:
        raise ModelError("log_z: expected a tensor of potentials, found none: unary, pairwise and factors are None")
    sizes = {flat.shape[0] for flat in flats if flat.ndim == 2}
    if len(sizes) > 1:
        raise ModelError(f"log_z: expected batches of one size, found {' and '.join(map(str, sorted(sizes)))}")
    there = iter(flats)
    tensors = [None if tensor is None else next(there) for tensor, _ in given]
    return _function().apply(model, approximation, chosen, *tensors)


def _laid_out(model: Model, tensor: Tensor, name: str) -> Tensor:
    """A tensor of potentials as (entries,) or (B, entries)."""
    if not library("torch").is_tensor(tensor):
        raise ModelError(f"{name}: expected a tensor, found {type(tensor).__name__}")
    size, shape = len(getattr(model, name).flat), tuple(tensor.shape)
    states = set(model.num_states.tolist())
    L = states.pop() if len(states) == 1 else None
    tables = {"unary": (model.num_variables, L), "pairwise": (model.num_edges, L, L)}.get(name, (size,))
    for inner in ((size,), tables):
        outer = shape[: len(shape) - len(inner)]
        if None not in inner and shape[len(outer) :] == inner and len(outer) <= 1 and 0 not in outer:
            return tensor.reshape(*outer, size)
    also = f" or {tables}" if None not in tables and tables != (size,) else ""
    raise ModelError(f"{name}: expected shape ({size},){also}, or a batch of these, found {shape}")


def _solved(model: Model, approximation: Approximation[Any], options: Options, tables: list[Floats]) -> list[Estimates]:
    """The lanes of one batch, if all models share their pairwise potentials; else a batch of one for each."""
    num_lanes = max(len(flat) for flat in tables)
    unary, pairwise, factors = tables
    if len(pairwise) == len(factors) == 1:
        shared = model.with_tables(model.unary.flat, pairwise[0], factors[0])
        return [approximation.solve(Batch(shared, unary.T), options)]
    each = [np.broadcast_to(flat, (num_lanes, flat.shape[1])) for flat in tables]
    return [
        approximation.solve(Batch.of(model.with_tables(*(flat[b].copy() for flat in each))), options)
        for b in range(num_lanes)
    ]


@cache
def _function() -> Any:
    """The autograd function, made when PyTorch is there."""
    torch = library("torch")

    class LogZ(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, model: Model, approximation: Any, options: Options, *tensors: Tensor | None) -> Tensor:
            tables = []
            for tensor, name in zip(tensors, ("unary", "pairwise", "factors"), strict=True):
                own = getattr(model, name).flat
                values = own if tensor is None else tensor.detach().cpu().double().numpy()
                tables.append(np.atleast_2d(as_log_potentials(values, name)))
            ctx.found = _solved(model, approximation, options, tables)
            ctx.like = [None if tensor is None else (tensor.ndim, tensor.dtype, tensor.device) for tensor in tensors]
            log_z = np.concatenate([found.log_z for found in ctx.found])
            first = next(tensor for tensor in tensors if tensor is not None)
            is_single = all(tensor is None or tensor.ndim == 1 for tensor in tensors)
            return first.new_tensor(log_z[0] if is_single else log_z)

        @staticmethod
        def backward(ctx: Any, out: Tensor) -> tuple[Tensor | None, ...]:
            if torch.is_grad_enabled():  # or what depends on the gradient would silently miss a term
                raise OptionError("create_graph: expected False, as log_z has no second derivative, found True")
            weights = np.atleast_1d(out.detach().cpu().double().numpy())
            gradients: list[Tensor | None] = [None, None, None]
            names = ("marginals", "pairwise_marginals", "factor_marginals")
            for needed, like, name in zip(ctx.needs_input_grad[3:], ctx.like, names, strict=True):
                if not needed:
                    gradients.append(None)
                    continue
                ndim, dtype, device = like
                # what a lane's log Z does not count for has no say, even where its marginals are nan
                rows = (
                    weight * tables.flat if weight else np.zeros(len(tables.flat))
                    for weight, tables in zip(
                        weights, (tables for found in ctx.found for tables in getattr(found, name)), strict=True
                    )
                )
                gradient = sum(rows) if ndim == 1 else np.stack(list(rows))
                gradients.append(torch.as_tensor(gradient, dtype=dtype, device=device))
            return tuple(gradients)

    return LogZ
