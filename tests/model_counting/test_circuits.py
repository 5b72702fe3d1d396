"""Nothing of a compiler's is believed: circuits that are wrong in any way are refused, or not said to be proven."""

import math

import numpy as np
import pytest
from budgets import Asked
from naive import enumerate_model

import clampz as cz
from clampz._kernels.model_counting import circuits as kernels
from clampz.model_counting import circuits
from clampz.model_counting.encoding import encode
from clampz.model_counting.subprocesses import Failed
from clampz.runtime.budget import Budget, Cancelled

EXACT = 1e-12
MEMORY = 10**8
NEVER = -math.inf


def implication():
    """x0 implies x1, with weights."""
    return cz.Model([[0.0, 0.5], [0.25, 0.0]], {(0, 1): [[0.0, 0.0], [NEVER, 0.0]]})


# x0 and x1, or not x0
RIGHT = b"nnf 5 4 2\nL 1\nL 2\nA 2 0 1\nL -1\nO 1 2 2 3\n"


def log_z(text, model):
    clauses = encode(model)
    circuit = circuits.checked(text, clauses, Budget(), MEMORY)
    return circuit.log_count + clauses.scale


def test_a_circuit_has_the_sum_and_the_marginals_of_its_model():
    model = implication()
    true, marginals, _ = enumerate_model(model)
    circuit = circuits.checked(RIGHT, encode(model), Budget(), MEMORY)
    assert log_z(RIGHT, model) == pytest.approx(true, abs=EXACT)
    assert circuit.probabilities()[[3, 2, 5, 4]] == pytest.approx(np.concatenate(marginals), abs=EXACT)
    assert 0.0 < circuit.rounding < EXACT


def test_booleans_that_a_circuit_does_not_mention_are_free():
    model = cz.Model([[0.0, 0.5], [0.25, 0.0], [0.0, 1.0]], {(0, 1): [[0.0, 0.0], [NEVER, 0.0]]})
    assert log_z(RIGHT, model) == pytest.approx(enumerate_model(model)[0], abs=EXACT)


WRONG = {
    "no circuit": [
        b"",
        b"c2d",
        b"nnf 1 0 2\n",
        b"nnf 1 0 2\nL-1\n",
        b"nnf 1 0 2\nL 1-\n",
        b"nnf 1 0 2\nL -\n",
        b"nnf 1 0 2\nL 100000000000000000000000000001\n",
        b"nnf 1 0 2\nX 1\n",
        b"nnf 1 0 2\nL x\n",
        b"nnf 1 0 2\nL 1.5\n",
    ],
    "over these booleans": [
        b"nnf 1 0 2\nL 3\n",
        b"nnf 1 0 2\nL\n",
        b"nnf 1 0 2\nA 3\n",
        b"nnf 1 0 2\nA L 3\n",
        b"nnf 1 0 2\nL 0\n",
        b"nnf 2 1 2\nA 1 1\nL 1\n",
        b"nnf 1 0 2\nA 99999999999 0\n",
        b"nnf 1 0 2\nO 7 0\n",
        b"nnf 1 0 2\nO 1 -1\n",
    ],
    "share a boolean": [
        b"nnf 3 2 2\nL -1\nL -1\nA 2 0 1\n",
        b"nnf 5 5 2\nL -1\nL 2\nA 2 0 1\nL -2\nA 2 2 3\n",
    ],
    "exclude each other": [
        b"nnf 3 2 2\nL -1\nL 2\nO 1 2 0 1\n",  # both hold where x1 does and x0 does not
        b"nnf 3 2 2\nL -1\nL -1\nO 1 2 0 1\n",
        b"nnf 4 3 2\nL -1\nL 2\nL 2\nO 1 3 0 1 2\n",
    ],
    "does not imply clause 0": [b"nnf 1 0 2\nA 0\n", b"nnf 1 0 2\nL 1\n", b"nnf 3 2 2\nL -2\nL 2\nO 2 2 0 1\n"],
}


@pytest.mark.parametrize(("why", "text"), [(why, text) for why, texts in WRONG.items() for text in texts])
def test_wrong_circuits_are_refused(why, text):
    with pytest.raises(Failed, match=why):
        log_z(text, implication())


def test_nodes_that_nothing_leads_to_do_not_matter():
    stray = b"nnf 7 4 2\nL 1\nL 1\nA 2 0 1\nL 2\nA 2 0 3\nL -1\nO 1 2 4 5\n"
    assert log_z(stray, implication()) == pytest.approx(enumerate_model(implication())[0], abs=EXACT)


def test_a_circuit_that_leaves_something_out_is_a_lower_bound():
    assert log_z(b"nnf 1 0 2\nL -1\n", implication()) < enumerate_model(implication())[0]
    assert log_z(b"nnf 1 0 2\nO 0 0\n", implication()) == -math.inf


def test_checks_end_with_the_watch_and_with_memory():
    clauses = encode(implication())
    with pytest.raises(Cancelled):
        circuits.checked(RIGHT, clauses, Asked(1), MEMORY)
    raised = np.ones(1, dtype=np.uint8)
    nodes = circuits.checked(RIGHT, clauses, Budget(), MEMORY).nodes
    assert kernels.check_shape(*nodes, np.zeros((5, 1), dtype=np.uint64), raised) == kernels.STOPPED
    assert kernels.first_not_implied(clauses.literals, *nodes, 2, raised) < 0
    with pytest.raises(Failed, match="does not fit into the memory"):
        circuits.checked(RIGHT, encode(implication()), Budget(), 10)


def test_more_clauses_than_bits_of_a_word():
    """The 65th clause and the 130th are the only ones that do not hold."""
    chain = [(i, i + 1) for i in range(130)]
    implies = np.array([[0.0, 0.0], [NEVER, 0.0]])
    model = cz.Model(np.zeros((131, 2)), dict.fromkeys(chain, implies))
    for left_out in (0, 64, 129):
        # all booleans are equal but for one place, where the first may hold and the second not
        lines = [b"L %d" % -i for i in range(left_out + 2, 132)] + [b"L %d" % i for i in range(1, left_out + 2)]
        lines.append(b"A 131 " + b" ".join(b"%d" % k for k in range(131)))
        with pytest.raises(Failed, match=f"clause {left_out}$"):
            circuits.checked(b"nnf 132 131 131\n" + b"\n".join(lines) + b"\n", encode(model), Budget(), MEMORY)


def proven(text, model):
    pytest.importorskip("pysat")
    clauses = encode(model)
    return circuits.completed(circuits.checked(text, clauses, Budget(), MEMORY), clauses, Budget(), MEMORY).is_complete


def test_only_what_has_everything_is_proven():
    assert proven(RIGHT, implication())
    assert not proven(b"nnf 1 0 2\nL -1\n", implication())
    assert not proven(b"nnf 1 0 2\nO 0 0\n", implication())
    differ = [[NEVER, 0.0], [0.0, NEVER]]
    odd = cz.Model(np.zeros((3, 2)), {(0, 1): differ, (1, 2): differ, (0, 2): differ})
    assert proven(b"nnf 1 0 3\nO 0 0\n", odd)
    assert proven(b"nnf 1 0 1\nA 0\n", cz.Model([[0.0, 1.0]]))
