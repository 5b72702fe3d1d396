"""log Z as a differentiable function of PyTorch tensors: its gradients are marginals.

PyTorch is imported when a function of this module is called, and never before.
"""

from functools import cache
from typing import Any, Unpack

import numpy as np

from clampz.approximations.registry import MethodKeywords
from clampz.errors import ModelError, OptionError, library
from clampz.interop.autodiff import LogZFunction
from clampz.model import Model

Tensor = Any


def log_z(
    unary: Tensor | None,
    pairwise: Tensor | None,
    model: Model,
    method: str = "exact",
    factors: Tensor | None = None,
    **options: Unpack[MethodKeywords],
) -> Tensor:
    """log Z of a model with these potentials in place of its own, as a tensor whose gradients are marginals.

    With "exact" they are the derivatives of log Z.  With "trw", "mini_buckets" and "mean_field" they are those of the
    bound, and with "bethe" those of its value, where the method has converged: there its own variables are at an
    optimum, and only the potentials count.  Where it has not, they are the marginals at the point reached; a smaller
    `tol` brings them nearer.  The gradient at a hard zero is 0, and nan where Z = 0.  There is no second derivative.

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
    given = {"unary": unary, "pairwise": pairwise, "factors": factors}
    tensors = {name: _tensor(name, tensor) for name, tensor in given.items() if tensor is not None}
    function = LogZFunction.of(model, method, options, {name: tuple(each.shape) for name, each in tensors.items()})
    return _autograd().apply(function, *(each.reshape(function.given[name]) for name, each in tensors.items()))


def _tensor(name: str, tensor: Tensor) -> Tensor:
    if not library("torch").is_tensor(tensor):
        raise ModelError(f"{name}: expected a tensor, found {type(tensor).__name__}")
    return tensor


@cache
def _autograd() -> Any:
    """Define the autograd function, once PyTorch is imported."""
    torch = library("torch")

    class LogZ(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, function: LogZFunction, *tensors: Tensor) -> Tensor:
            ctx.function, ctx.at = function, function.at([tensor.detach().cpu().double().numpy() for tensor in tensors])
            ctx.like = [(tensor.ndim, tensor.dtype, tensor.device) for tensor in tensors]
            log_z = ctx.at.log_z
            return tensors[0].new_tensor(log_z if function.is_batch else log_z[0])

        @staticmethod
        def backward(ctx: Any, out: Tensor) -> tuple[Tensor | None, ...]:
            if torch.is_grad_enabled():  # or what depends on the gradient would silently miss a term
                raise OptionError("create_graph: expected False, as log_z has no second derivative, found True")
            weights = np.atleast_1d(out.detach().cpu().double().numpy())

            def gradient(name: str, ndim: int, dtype: Any, device: Any) -> Tensor:
                rows = ctx.at.gradients(name, weights)
                return torch.as_tensor(rows if ndim == 2 else rows.sum(axis=0), dtype=dtype, device=device)

            needed = zip(ctx.needs_input_grad[1:], ctx.function.given, ctx.like, strict=True)
            return None, *(gradient(name, *like) if is_needed else None for is_needed, name, like in needed)

    return LogZ
