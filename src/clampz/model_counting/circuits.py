"""Circuits: clauses compiled by dsharp (of the package `problog`), checked here, and proven complete by CaDiCaL.

A circuit is a directed graph of ANDs and ORs over literals (a d-DNNF).  Where the parts of an AND have no boolean in
common and those of an OR exclude each other, sums over all assignments that satisfy it take one pass, and the marginals
of all literals one more.  Compilers have had faults in just these points, so nothing of theirs is believed:

- the two properties are looked at node by node, and that every clause holds wherever the circuit does: then the
  circuit's sum has nothing twice and nothing that does not belong, and is a lower bound on the count;
- that the circuit holds wherever all clauses do: its clauses together with the negation of the circuit are refuted by a
  SAT solver.  Then it is an upper bound too.
"""

import math
import os
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.model_counting import circuits as kernels
from clampz._kernels.statuses import DONE, STOPPED
from clampz.model_counting.encoding import Clauses
from clampz.model_counting.subprocesses import Failed, Program, wait_for
from clampz.numerics import EPS, Floats
from clampz.runtime.budget import Budget, Cancelled

FAULTS = {
    kernels.OVERLAPPING: "parts of a product share a boolean",
    kernels.AMBIGUOUS: "parts of a sum do not plainly exclude each other",
}
# Bytes per token while a circuit is read and checked, beside the sets of booleans.
BYTES_PER_TOKEN = 40


def compiler() -> Path | None:
    """Where dsharp is, if it is installed."""
    spec = find_spec("problog")
    folders = spec.submodule_search_locations if spec else None
    found = [path for folder in folders or () for path in Path(folder).glob("bin/*/dsharp") if os.access(path, os.X_OK)]
    return found[0] if found else None


Nodes = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Circuit:
    """A circuit that holds only where the clauses do.

    Attributes
    ----------
    nodes
        kind, label, start, child, reached: as `_kernels.circuits` has them.
    value, error
        The log of the sum over the assignments that satisfy each node, the two weights of every boolean scaled to a sum
        of 1, and what rounding may have changed.
    scale, scale_error
        The log of what the weights were divided by, and what rounding may have changed of it.
    is_complete
        Whether it is proven to hold wherever the clauses do.
    """

    nodes: Nodes
    log_weight: Floats
    value: Floats
    error: Floats
    scale: float
    scale_error: float
    is_complete: bool = False

    @property
    def log_count(self) -> float:
        return float(self.value[-1]) + self.scale

    @property
    def rounding(self) -> float:
        """How far off rounding may leave the log of the count."""
        if self.log_count == -math.inf:
            return 0.0
        return float(self.error[-1]) + self.scale_error + EPS * abs(self.log_count)

    def probabilities(self) -> Floats:
        """Return the probability of each literal, at 2 boolean + (literal < 0)."""
        flow = kernels.literal_flows(*self.nodes[:4], self.value, len(self.log_weight) // 2 - 1)
        weight = np.exp(self.log_weight)
        # what does not mention a boolean has either of its states, by weight
        rest = np.maximum(1.0 - flow[::2] - flow[1::2], 0.0)
        probabilities: Floats = np.clip(flow + weight * np.repeat(rest, 2), 0.0, 1.0)
        return probabilities


def compiled(clauses: Clauses, budget: Budget, memory: int) -> Circuit:
    """The circuit of some clauses, its completeness proven if there is time for that; raises Failed where none is to
    be had, Cancelled where the budget ends before."""
    budget.check_stop()
    with _dsharp(clauses, memory) as program:
        if not wait_for([program], budget):
            raise Cancelled
        text = program.answer("circuit")
    return completed(checked(text, clauses, budget, memory), clauses, budget, memory)


def completed(circuit: Circuit, clauses: Clauses, budget: Budget, memory: int) -> Circuit:
    """A circuit that is proven to hold wherever the clauses do, where there is a solver, and time for that."""
    if find_spec("pysat") is None:
        return circuit
    # a node holds if its parts do, and the root does not: is that, with the clauses, impossible?
    literals = np.concatenate([clauses.literals, kernels.negation(*circuit.nodes, clauses.num_booleans)])
    with Program("CaDiCaL", {"work": "refute"}, {"literals": literals}, memory) as program:
        try:
            return replace(circuit, is_complete=bool(wait_for([program], budget)) and program.answer() == b"yes")
        except Failed:
            return circuit


def _dsharp(clauses: Clauses, memory: int) -> Program:
    path = compiler()
    if path is None:
        raise Failed("dsharp is not installed")
    command = [str(path), "-q", "-Fnnf", "circuit", "clauses"]
    return Program("dsharp", {"work": "run", "command": command}, {"clauses": _dimacs(clauses)}, memory)


def _dimacs(clauses: Clauses) -> NDArray[np.uint8]:
    """The clauses as compilers read them."""
    words = " ".join(map(str, clauses.literals.tolist())) + " "
    text = f"p cnf {clauses.num_booleans} {clauses.num_clauses}\n" + words.replace(" 0 ", " 0\n")
    return np.frombuffer(text.encode(), dtype=np.uint8)


def checked(text: bytes, clauses: Clauses, budget: Budget, memory: int) -> Circuit:
    """A circuit from a file, of which nothing is believed."""
    num_booleans = clauses.num_booleans
    words = num_booleans // 64 + 1
    header, _, body = text.partition(b"\n")
    tokens = kernels.read_tokens(np.frombuffer(body, dtype=np.uint8))
    if not header.startswith(b"nnf") or len(tokens) == 0:
        raise Failed("dsharp wrote no circuit")
    nodes = kernels.lay_out(tokens, num_booleans)
    num_nodes = len(nodes[0])
    if num_nodes == 0:
        raise Failed("dsharp wrote no circuit over these booleans")
    if 8 * num_nodes * words + BYTES_PER_TOKEN * len(tokens) > memory:
        raise Failed(f"a circuit of {num_nodes:,} nodes does not fit into the memory that there is")
    budget.check_stop()
    status = budget.run(kernels.check_shape, *nodes, np.zeros((num_nodes, words), dtype=np.uint64))
    if status == STOPPED:
        raise Cancelled
    if status != DONE:
        raise Failed(f"dsharp wrote a circuit that cannot be summed: {FAULTS[status]}")
    implied = budget.run(kernels.first_not_implied, clauses.literals, *nodes, num_booleans)
    if implied < 0:
        raise Cancelled
    if implied < clauses.num_clauses:
        raise Failed(f"dsharp wrote a circuit that does not imply clause {implied}")
    return _summed(nodes, clauses)


def _summed(nodes: Nodes, clauses: Clauses) -> Circuit:
    with np.errstate(divide="ignore"):
        log_weights = np.log(clauses.weights)
    sums = np.logaddexp(log_weights[:, 0], log_weights[:, 1])
    log_weight = np.zeros(2 * len(sums) + 2)
    log_weight[2:] = np.minimum(log_weights - sums[:, None], 0.0).ravel()
    value, error = np.zeros(len(nodes[0])), np.zeros(len(nodes[0]))
    kernels.log_values(log_weight, *nodes, value, error)
    scale_error = EPS * (4.0 * len(sums) + 2.0 * float(np.abs(sums).sum()))
    return Circuit(nodes, log_weight, value, error, math.fsum(sums), scale_error)
