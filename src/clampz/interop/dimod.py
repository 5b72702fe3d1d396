"""dimod's BinaryQuadraticModel, which has energies: p(x) is proportional to exp(-beta E(x)), and so score = -beta E;
its SampleSet, and a sampler that dimod's own tools can use: `clampz.interop.dimod.ClampzSampler()`."""

import math
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from clampz.display.formatting import counted
from clampz.errors import ModelError, OptionError, library, shown
from clampz.interop.common import as_names, conditioned, in_order
from clampz.model import Evidence, Model
from clampz.model.checks import as_log_potentials
from clampz.model.model_checks import check_model
from clampz.runtime.options import check_option, is_number, knows_its_options
from clampz.sampling.sample import sample
from clampz.sampling.samples import Samples

VALUES = {"SPIN": (-1, 1), "BINARY": (0, 1)}
SPIN_NAMES = ("-1", "1")


@knows_its_options
def from_dimod(bqm: Any, beta: float = 1.0, *, evidence: Evidence | None = None) -> Model:
    """Convert a BinaryQuadraticModel at inverse temperature beta; its offset becomes the constant.

    State 1 is the higher value. The states of spins are named "-1" and "1".

    Parameters
    ----------
    bqm
        dimod's BinaryQuadraticModel, of spins or of zeros and ones: `p(x)` is proportional to `exp(-beta E(x))`.
    beta
        The inverse temperature, >= 0.
    evidence
        `{variable: value}` in dimod's own labels and values: the model is conditioned on it at once.

    Returns
    -------
    Model
        Its score is -beta times the energy.

    Raises
    ------
    MissingLibraryError
        Where dimod is not installed.
    ModelError
        Where it is something else, or has a bias that is not finite.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.

    Examples
    --------
    >>> import dimod
    >>> bqm = dimod.BinaryQuadraticModel.from_ising({}, {("a", "b"): -1.0})
    >>> from_dimod(bqm, beta=0.5).score({"a": "-1", "b": "-1"})  # the energy is -1
    0.5
    """
    dimod = library("dimod")
    if not isinstance(bqm, dimod.BinaryQuadraticModel):
        raise ModelError(f"expected dimod's BinaryQuadraticModel, found {type(bqm).__name__}")
    check_option(is_number(beta) and math.isfinite(beta) and beta >= 0, "beta", "a finite number >= 0", beta)
    labels = in_order(list(bqm.variables))
    vectors = bqm.to_numpy_vectors(variable_order=labels)
    linear = -beta * as_log_potentials(vectors.linear_biases, "linear biases", finite=True)
    row, column, biases = vectors.quadratic
    quadratic = -beta * as_log_potentials(biases, "quadratic biases", finite=True)
    values = np.array(VALUES[bqm.vartype.name])
    model = Model.from_arrays(
        np.multiply.outer(linear, values),
        np.stack([row, column], axis=1),
        np.multiply.outer(quadratic, np.multiply.outer(values, values)),
        constant=-beta * float(vectors.offset),
        names=as_names(labels),
        state_names=[SPIN_NAMES] * len(labels) if bqm.vartype.name == "SPIN" else None,
    )
    return conditioned(model, evidence, labels, [VALUES[bqm.vartype.name]] * len(labels))


def to_dimod(model: Model, beta: float = 1.0, vartype: Literal["SPIN", "BINARY"] | Any = None) -> Any:
    """Convert to the BinaryQuadraticModel of energies `-score / beta`, constant included, labelled by names or else
    indices.

    Parameters
    ----------
    model
        A pairwise model of binary variables without hard zeros.
    beta
        The inverse temperature, > 0.
    vartype
        "SPIN" or "BINARY", or dimod's own; if None, SPIN where the states are named "-1" and "1", and else BINARY.
        Other names of states are lost.

    Returns
    -------
    dimod.BinaryQuadraticModel
        With as many variables and interactions as the model has variables and edges.

    Raises
    ------
    MissingLibraryError
        Where dimod is not installed.
    ModelError
        Where the model has larger factors, more states or hard zeros, and which.

    Examples
    --------
    >>> from clampz import Model
    >>> print(to_dimod(Model.from_binary([0.0, 0.0], [2.0], [(0, 1)])).energy({0: 1, 1: 1}))
    -1.0
    """
    check_model(model)
    dimod = library("dimod")
    check_option(is_number(beta) and 0 < beta < math.inf, "beta", "a finite number > 0", beta)
    n, spin = model.num_variables, _is_spin(model, vartype)
    if model.binary is None:
        raise ModelError(
            "a BinaryQuadraticModel has finite energies of pairs of binary variables; "
            f"this model has {_obstacle(model)}"
        )
    low, high = model.unary.flat.reshape(-1, 2).T
    a, b, c, d = model.pairwise.flat.reshape(-1, 4).T
    i, j = model.edges.T
    # with x = 0, 1 a table is a + (c-a) x_i + (b-a) x_j + (a+d-b-c) x_i x_j
    bqm = dimod.BinaryQuadraticModel.from_numpy_vectors(
        -(high - low + np.bincount(i, c - a, n) + np.bincount(j, b - a, n)) / beta,
        (i, j, -(a + d - b - c) / beta),
        -float(model.constant + low.sum() + a.sum()) / beta,
        "BINARY",
        variable_order=model.names or range(n),
    )
    return bqm.change_vartype("SPIN", inplace=False) if spin else bqm


def to_dimod_sampleset(samples: Samples, beta: float = 1.0, vartype: Literal["SPIN", "BINARY"] | Any = None) -> Any:
    """Convert samples of a binary model to a SampleSet, with energies `-score / beta` and the labels of `to_dimod`.

    `info` says what the samples are ("kind", "reason"); weighted ones have a vector "log_weight" beside their energies.

    Parameters
    ----------
    samples
        What `sample` returned for a model of binary variables.
    beta, vartype
        As for `to_dimod`.

    Returns
    -------
    dimod.SampleSet
        A row for each sample, in the order in which they were drawn.

    Raises
    ------
    MissingLibraryError
        Where dimod is not installed.
    ModelError
        Where a variable has other than two states.

    Examples
    --------
    >>> from clampz import generators
    >>> found = to_dimod_sampleset(sample(generators.cycle(5, rng=0), 100, rng=1))
    >>> len(found), found.info["kind"]
    (100, 'exact')
    """
    check_option(isinstance(samples, Samples), "samples", "Samples, which cz.sample draws", samples)
    dimod, model = library("dimod"), samples.model
    check_option(is_number(beta) and 0 < beta < math.inf, "beta", "a finite number > 0", beta)
    if (model.num_states != 2).any():
        raise ModelError(f"a SampleSet has binary variables; this model has {_obstacle(model)}")
    kind = "SPIN" if _is_spin(model, vartype) else "BINARY"
    return dimod.SampleSet.from_samples(
        (np.array(VALUES[kind], dtype=np.int8)[samples.states], list(model.names or range(model.num_variables))),
        kind,
        -samples.scores / beta,
        info=_info(samples),
        sort_labels=False,
        **_weights(samples),
    )


@cache
def _sampler_class() -> type:
    """Make the class of samplers on demand, since it is a dimod.Sampler."""
    dimod = library("dimod")

    class ClampzSampler(dimod.Sampler):  # type: ignore[misc, name-defined]
        """A dimod.Sampler that draws from exp(-beta E(x)): exactly where the model is narrow enough, and else as
        `clampz.sample` does; `info` of the SampleSet says which. Parameters of `sample`: num_reads, beta (inverse
        temperature), seed, and method, time, memory and threads of `clampz.sample`."""

        parameters: ClassVar[dict[str, Any]] = {
            name: [] for name in ("num_reads", "beta", "seed", "method", "time", "memory", "threads")
        }
        properties: ClassVar[dict[str, Any]] = {
            "description": "samples of exp(-beta E), exact where the model is narrow enough"
        }

        def sample(
            self,
            bqm: Any,
            *,
            num_reads: int = 1,
            beta: float = 1.0,
            seed: int | None = None,
            method: str = "auto",
            time: float | None = None,
            memory: int | str | None = None,
            threads: int | None = None,
            **others: Any,
        ) -> Any:
            """Draw configurations of a BinaryQuadraticModel, in the order in which they were drawn."""
            self.remove_unknown_kwargs(**others)
            labels = list(bqm.variables)
            numbered = bqm.relabel_variables({label: i for i, label in enumerate(labels)}, inplace=False)
            model = from_dimod(numbered, beta)
            found = sample(model, num_reads, method=method, time=time, memory=memory, threads=threads, rng=seed)
            values = np.array(VALUES[bqm.vartype.name], dtype=np.int8)[found.states]
            return dimod.SampleSet.from_samples_bqm(
                (values, labels), bqm, info=_info(found), sort_labels=False, **_weights(found)
            )

    ClampzSampler.__module__, ClampzSampler.__qualname__ = __name__, "ClampzSampler"
    return ClampzSampler


def __getattr__(name: str) -> Any:
    if name == "ClampzSampler":
        return _sampler_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _info(samples: Samples) -> dict[str, Any]:
    return {"kind": samples.kind, "reason": samples.reason, "num_drawn": samples.num_drawn}


def _weights(samples: Samples) -> dict[str, Any]:
    return {"log_weight": samples.log_weights} if samples.kind == "weighted" else {}


def _is_spin(model: Model, vartype: Any) -> bool:
    """Whether values are -1 and 1: as `vartype` says, or where the states are named so."""
    dimod, n = library("dimod"), model.num_variables
    if vartype is None:
        return bool(n) and model.state_names == (SPIN_NAMES,) * n
    try:
        return dimod.as_vartype(vartype) is dimod.SPIN
    except TypeError:
        raise OptionError(f"vartype: expected 'SPIN' or 'BINARY', found {shown(vartype)}") from None


def _obstacle(model: Model) -> str:
    """Say why a model has no binary form."""
    if model.factors:
        return f"a factor of {len(model.factors[0].scope)} variables"
    other = np.flatnonzero(model.num_states != 2)
    if other.size:
        name = repr(model.names[other[0]]) if model.names else other[0]
        return f"variable {name} of {counted(int(model.num_states[other[0]]), 'state')}"
    return "a hard zero (-inf)"
