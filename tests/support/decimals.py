"""An oracle of its own: every configuration of a small model, visited in decimal arithmetic of 50 digits.

It shares no code with the library, and rounds so little that what is charged for rounding can be held to be enough.
"""

import decimal
from decimal import Decimal

import numpy as np

DIGITS = decimal.Context(prec=50, Emin=-(10**9), Emax=10**9)
IMPOSSIBLE = Decimal("-Infinity")
in_decimals = np.vectorize(lambda value: Decimal(float(value)), otypes=[object])
exponentials = np.vectorize(lambda value: DIGITS.exp(value), otypes=[object])


def tables_of(model):
    """All tables of a model with their scopes, in the order of its unary, pairwise and larger ones."""
    tables = [((i,), model.unary[i]) for i in range(model.num_variables)]
    return tables + list(model.pairwise.items()) + [(scope, table) for scope, table in model.factors]


class Oracle:
    """The scores and weights of all configurations, an axis per variable; log Z, the best score, and marginals."""

    def __init__(self, num_states, tables, constant=0.0):
        self.num_states = tuple(map(int, num_states))
        self.tables = [(tuple(map(int, scope)), np.asarray(table, dtype=float)) for scope, table in tables]
        with decimal.localcontext(DIGITS):
            scores = np.full(self.num_states, Decimal(float(constant)), dtype=object)
            for scope, table in self.tables:
                wide = [k if i in scope else 1 for i, k in enumerate(self.num_states)]
                values = in_decimals(np.transpose(table, np.argsort(scope)).reshape(wide))
                scores = np.asarray(scores + values, dtype=object)
            self.scores = scores
            self.best = max(scores.ravel())
            self.weights = exponentials(scores - (self.best if self.is_possible else 0))
            self.total = self.weights.sum()
            self.log_z = self.best + self.total.ln() if self.is_possible else IMPOSSIBLE

    @classmethod
    def of(cls, model, evidence=None):
        """Of a model, some of its variables known to be in a state."""
        pins = [
            ((i,), [0.0 if a == known else -np.inf for a in range(model.num_states[i])])
            for i, known in (evidence or {}).items()
        ]
        return cls(model.num_states, tables_of(model) + pins, model.constant)

    @property
    def is_possible(self):
        return self.best > IMPOSSIBLE

    def joint(self, scope):
        """The joint marginals of some variables, an axis for each in the order asked for."""
        with decimal.localcontext(DIGITS):
            others = tuple(i for i in range(len(self.num_states)) if i not in scope)
            summed = np.asarray(np.sum(self.weights, axis=others), dtype=object) / self.total
        return np.transpose(np.asarray(summed, dtype=float), np.argsort(np.argsort(scope)))

    def beliefs(self, at_least=1):
        """The marginals of all tables over this many variables and more, end to end."""
        found = [self.joint(scope).ravel() for scope, _ in self.tables if len(scope) >= at_least]
        return np.concatenate([np.empty(0), *found])
