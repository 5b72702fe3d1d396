"""What `soundness.py` asks about a model: every method, start, clamp, bracket and interval, with random settings."""

import itertools
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import clampz as cz
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape
from clampz.bounding.strategies import cutset
from clampz.bounding.strategies.cutset import CutsetSums
from clampz.bounding.strategies.diving import Diving
from clampz.bounding.leaves.proposal_source import ProposalSource
from clampz.exact_inference import plans as sum_plans
from clampz.exact_inference import sums
from clampz.runtime.budget import UNLIMITED
from soundness_models import Drawn
from soundness_truth import Truth, difference

# Beyond the rounding of log Z, what a marginal that is called exact may be off by.
MARGINAL_ERROR = 1e-9
# States of a variable whose probabilities are looked at.
MOST_STATES = 6
# No bracket is to be ended by the clock.
PLENTY = 20.0

Evidence = tuple[tuple[int, int], ...]
Numbers = np.random.Generator


class Claimed(NamedTuple):
    """An interval that something says the truth is in: log Z under some evidence, the probability of a state, or
    another value, as a function of the truth (None for -inf)."""

    what: str
    lower: float
    upper: float
    evidence: Evidence = ()
    variable: int = -1
    state: int = -1
    value: Callable[[Truth], Decimal | None] | None = None


Question = Callable[[Drawn, cz.Model, Numbers], Iterator[Claimed]]


def some_options(method: str, rng: Numbers) -> dict[str, Any]:
    """Limits and settings that change what a method does."""
    out: dict[str, Any] = {"threads": int(rng.choice([1, 1, 1, 2]))}
    if method == "exact":
        return out | {"marginals": bool(rng.random() < 0.5)}
    out["max_iter"] = int(rng.choice([1, 2, 5, 50]))
    if method == "mean_field":
        return out | {"num_starts": int(rng.integers(1, 4)), "seed": int(rng.integers(100))}
    if method == "trw":
        weights = str(rng.choice(["uniform", "uniform", "sampled", "optimized"]))
        return out | {"edge_weights": weights, "num_trees": 5, "num_steps": 2, "seed": int(rng.integers(100))}
    if method == "mini_buckets":
        limits = {"max_table": int(rng.choice([2, 4, 8, 64])), "num_structures": int(rng.choice([1, 1, 3]))}
        return out | limits | {"seed": int(rng.integers(100))}
    return out | {"num_starts": 1}


def some_method(rng: Numbers) -> tuple[Any, str]:
    name = str(rng.choice(["exact", "mean_field", "trw", "bethe", "mini_buckets"], p=[0.2, 0.2, 0.2, 0.1, 0.3]))
    return getattr(cz, name), name


def some_evidence(drawn: Drawn, rng: Numbers, most: int = 3) -> dict[int, int]:
    n = len(drawn.num_states)
    chosen = rng.choice(n, size=min(n, int(rng.integers(0, most + 1))), replace=False).tolist() if n else []
    return {i: int(rng.integers(drawn.num_states[i])) for i in chosen}


def said(drawn: Drawn, evidence: dict[int, int]) -> Mapping[Any, int]:
    """Evidence as users give it, by name where there are names."""
    return {f"v{i}": a for i, a in evidence.items()} if drawn.named else evidence


def selectors_for(drawn: Drawn) -> list[str]:
    """Those that are defined for a model: cycles are for two states, and nothing that is impossible."""
    pairs = [table for scope, table in drawn.factors if len(scope) > 1]
    plain = set(drawn.num_states) == {2} and all(t.ndim == 2 and np.isfinite(t).all() for t in pairs)
    return [name for name in cz.selectors() if plain or "Cycles" not in name]


def one_method(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    method, name = some_method(rng)
    found = method(model, **some_options(name, rng))
    yield Claimed(name, found.lower, found.upper)
    if name == "exact" and found.options.marginals and found.log_z > -math.inf:
        yield from exact_marginals(drawn, "marginals of exact", found.marginals, found.upper - found.lower, rng)


def exact_marginals(drawn: Drawn, what: str, marginals: Any, gap: float, rng: Numbers) -> Iterator[Claimed]:
    """Of one variable, within what rounding may do."""
    if drawn.num_states:
        i, off = int(rng.integers(len(drawn.num_states))), MARGINAL_ERROR + 4 * gap
        for a, p in itertools.islice(enumerate(marginals[i].tolist()), MOST_STATES):
            yield Claimed(what, p - off, p + off, variable=i, state=a)


def every_state(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Lanes that fix one variable to each state."""
    few = [i for i, states in enumerate(drawn.num_states) if states <= 20 and model.unary[i].max() > -np.inf]
    if not few:
        return
    i = int(rng.choice(few))
    method, name = some_method(rng)
    found = method(cz.branches(model, [i]), **some_options(name, rng))
    states = np.flatnonzero(model.unary[i] > -np.inf).tolist()
    for a, lower, upper in zip(states, found.lower.tolist(), found.upper.tolist(), strict=True):
        yield Claimed(f"{name} in branches", lower, upper, ((i, a),))


def lanes(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Lanes with different clamps; those that are refused are claimed to be impossible."""
    sets = []
    for evidence in [some_evidence(drawn, rng) for _ in range(int(rng.integers(3, 11)))]:
        try:
            cz.Batch.from_evidence(model, [evidence])
            sets.append(evidence)
        except cz.errors.EvidenceError:
            yield Claimed("evidence refused", -math.inf, -math.inf, tuple(evidence.items()))
    if sets:
        method, name = some_method(rng)
        found = method(model, evidence=[said(drawn, evidence) for evidence in sets], **some_options(name, rng))
        for evidence, lower, upper in zip(sets, found.lower.tolist(), found.upper.tolist(), strict=True):
            yield Claimed(f"{name} of lanes", lower, upper, tuple(evidence.items()))


def starts(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """From an earlier estimate, by whatever method, and from probabilities."""
    other, name = some_method(rng)
    if rng.random() < 0.5:
        start = other(model, **some_options(name, rng))
    else:
        name, start = "an array", np.concatenate([np.empty(0), *(some_point(k, rng) for k in drawn.num_states)])
    for method in ("mean_field", "trw", "bethe", "mini_buckets"):
        options = some_options(method, rng)
        found = getattr(cz, method)(model, start=start, **options)
        yield Claimed(f"{method} from {name}", found.lower, found.upper)


def some_point(states: int, rng: Numbers) -> np.ndarray:
    """Probabilities, good ones or not: a point, all but nothing, a distribution, anything."""
    kind = rng.integers(5)
    if kind == 0:
        return np.eye(states)[rng.integers(states)]
    if kind == 1:
        return np.full(states, float(rng.choice([0.0, 1e-320, 1e-200, 1.0])))
    if kind == 2:
        return 10.0 ** rng.uniform(-300, 0, size=states)
    return rng.dirichlet(np.ones(states)) if kind == 3 else rng.random(states)


def given_weights(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """TRW with mixtures of spanning forests, one for all lanes or one for each."""
    if model.factors or not model.num_edges:
        return
    num_lanes = int(rng.integers(1, 4))
    batch = cz.Batch(model, np.repeat(model.unary.flat[:, None], num_lanes, axis=1))
    columns = num_lanes if rng.random() < 0.5 else 1
    rho = np.stack([mixture(model.edges, model.num_variables, rng) for _ in range(columns)], axis=1)
    found = cz.trw(batch, edge_weights=rho, max_iter=int(rng.choice([1, 5, 50])), threads=1)
    for lower, upper in zip(found.lower.tolist(), found.upper.tolist(), strict=True):
        yield Claimed("trw with weights", lower, upper)


def mixture(edges: np.ndarray, num_variables: int, rng: Numbers) -> np.ndarray:
    """(m,) weights of a few random spanning forests, with a little of one that has every edge."""
    share = rng.dirichlet(np.ones(int(rng.integers(1, 5))))
    out = np.zeros(len(edges))
    for part in share:
        parent = list(range(num_variables))

        def root(i: int, parent: list[int] = parent) -> int:
            while parent[i] != i:
                i = parent[i]
            return i

        for k in rng.permutation(len(edges)):
            i, j = (root(int(v)) for v in edges[k])
            if i != j:
                parent[i] = j
                out[k] += part
    least = 1.0 / len(edges)  # any forest polytope has all edges at this
    return np.clip((1 - 1e-3) * out + 1e-3 * least, 1e-9, 1.0)


def clamped(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Clamps by every selector, warm and cold."""
    n = len(drawn.num_states)
    method = str(rng.choice(["trw", "trw", "mf", "bethe", "exact", "mini_buckets"]))
    k = int(rng.integers(0, 1 + min(3, n)))
    warm = bool(rng.random() < 0.7)
    changes: dict[str, Any] = {"threads": 1, "warm_starts": warm}
    if method != "exact":
        changes["max_iter"] = int(rng.choice([1, 5, 30]))
    if method == "mini_buckets":
        changes["max_table"] = int(rng.choice([2, 4, 8]))
    if method == "trw":
        changes["edge_weights"] = str(rng.choice(["uniform", "optimized"]))
        changes["num_steps"] = 2
    if warm:
        changes["per_branch"] = bool(rng.random() < 0.2)
        changes["reweight"] = bool(rng.random() < 0.3)
    name = str(rng.choice([*selectors_for(drawn), "greedy", "pseudo-greedy", "optimal"]))
    if name in ("greedy", "optimal", "pseudo-greedy"):
        k = min(k, 1 if n > 6 else 2)
        changes["per_branch"] = False
        changes["criterion"] = [None, "trw", "mf", "bethe", "gap"][int(rng.integers(5))]
    while k and float(np.prod(np.sort(drawn.num_states)[n - k :].astype(float))) > 48:
        k -= 1
    if rng.random() < 0.3:
        changes["variables"] = rng.choice(n, size=k, replace=False).tolist() if k else []
    else:
        changes["k"], changes["select"] = k, name
    found = cz.clamp(model, method, **changes)
    yield Claimed(f"clamp {method}", found.lower, found.upper)
    for step in found.steps:
        yield Claimed(f"clamp {method}, by steps", step.lower, step.upper)


def some_search(drawn: Drawn, rng: Numbers) -> dict[str, Any]:
    return {
        "gap": float(rng.choice([0.0, 1e-9, 0.1])),
        "max_iter": int(rng.choice([1, 5, 30])),
        "threads": int(rng.choice([1, 1, 1, 2])),
        "seed": int(rng.integers(100)),
        "criterion": str(rng.choice(["gap", "upper", "lower"])),
        "select": str(rng.choice(["cuts", "cuts", *selectors_for(drawn)])),
        "max_table": [None, None, 2, 4, 8][int(rng.integers(5))],
        "time": PLENTY,
    }


def bracket_at_once(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    for bracket in cz.iter_bounds(model, leaves=int(rng.integers(1, 20)), **some_search(drawn, rng)):
        yield Claimed("bound", bracket.lower, bracket.upper)


def bracket_without_sums(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    leaves = int(rng.integers(1, 5)) if rng.random() < 0.95 else int(rng.integers(5, 60))
    for bracket in cz.iter_bounds(model, leaves=leaves, exact=False, **some_search(drawn, rng)):
        yield Claimed("bound exact=False", bracket.lower, bracket.upper)


def bracket_in_no_time(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    bracket = cz.bound(model, **(some_search(drawn, rng) | {"time": 0.0}))
    yield Claimed("bound time=0", bracket.lower, bracket.upper)


def bracket_gone_on_with(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    options = some_search(drawn, rng) | {"exact": bool(rng.random() < 0.3)}
    with tempfile.TemporaryDirectory() as folder:
        for leaves in (2, 2, 5):
            bracket = cz.bound(model, leaves=leaves, checkpoint=Path(folder) / "search", **options)
            yield Claimed("bound from a checkpoint", bracket.lower, bracket.upper)


def intervals(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Of marginals."""
    if drawn.num_states:
        i = int(rng.integers(len(drawn.num_states)))
        sums = bool(rng.random() < 0.5)
        options = some_search(drawn, rng) | {"exact": sums, "gap": float(rng.choice([0.01, 0.3])), "leaves": 3}
        found = cz.bound_marginals(model, [f"v{i}" if drawn.named else i], **options)
        what = f"bound_marginals exact={sums}"
        for a, (lower, upper) in itertools.islice(enumerate(found.interval(i).tolist()), MOST_STATES):
            yield Claimed(what, lower, upper, variable=i, state=a)


def solved(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """`solve`, with evidence or without, by itself or as asked."""
    evidence = some_evidence(drawn, rng) if rng.random() < 0.5 else {}
    options: dict[str, Any] = {"time": float(rng.choice([0.05, 1.0])), "threads": 1}
    if rng.random() < 0.2:
        options["method"] = str(rng.choice(["exact", "mf", "bethe", "trw"]))
    elif rng.random() < 0.1 and max(drawn.num_states, default=1) <= 48:
        options["k"] = min(1, len(drawn.num_states))
    try:
        found = cz.solve(model, evidence=said(drawn, evidence), **options)
    except cz.errors.EvidenceError:
        yield Claimed("evidence refused", -math.inf, -math.inf, tuple(evidence.items()))
        return
    yield Claimed("solve", found.lower, found.upper, tuple(evidence.items()))
    if found.bound is not None:
        low = found.lower if found.bound == "exact" else found.log_z if found.bound == "lower" else -math.inf
        high = found.upper if found.bound == "exact" else found.log_z if found.bound == "upper" else math.inf
        yield Claimed("solve's answer", low, high, tuple(evidence.items()))
    if not evidence and found.method == "exact" and found.log_z > -math.inf:
        yield from exact_marginals(drawn, "marginals of solve", found.marginals, found.upper - found.lower, rng)


def simplified(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Sums of reduced models, some variables retained or not, presolved once or twice, and marginals by postsolve."""
    keep = [i for i in range(len(drawn.num_states)) if rng.random() < 0.2]
    options = {"marginals": bool(rng.random() < 0.5), "pairwise": bool(rng.random() < 0.3)}
    rest = cz.simplify(model, [f"v{i}" if drawn.named else i for i in keep], **options)
    found = cz.exact(rest.model, threads=1)
    lower, upper = rest.bounds(found.lower, found.upper)
    yield Claimed("simplify", lower, upper)
    again = cz.simplify(rest.model, marginals=False)
    last = cz.exact(again.model, marginals=False, threads=1)
    yield Claimed("simplify twice", *rest.bounds(*again.bounds(last.lower, last.upper)))
    if options["marginals"] and found.log_z > -math.inf and not np.isnan(found.marginals.flat).any():
        beliefs = found.marginals.flat, found.pairwise_marginals.flat, found.factor_marginals.flat
        flat = rest.marginals(np.concatenate(beliefs))
        start = model.unary.start
        marginals = [flat[start[i] : start[i + 1]] for i in range(len(drawn.num_states))]
        yield from exact_marginals(drawn, "marginals of what was simplified", marginals, upper - lower, rng)


def planar(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Planar sums, where there are any."""
    marginals = bool(rng.random() < 0.5)
    try:
        found = cz.exact(model, engine="planar", marginals=marginals, threads=1)
    except cz.errors.OptionError:
        return
    yield Claimed("planar sum", found.lower, found.upper)
    if marginals and found.log_z > -math.inf:
        yield from exact_marginals(drawn, "marginals of a planar sum", found.marginals, found.upper - found.lower, rng)


def contracted(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Sums in pairs, however short, with presolve before them or not, and in slices."""
    simply = rng.random() < 0.5
    with ExitStack() as stack:
        stack.enter_context(patch.object(sums, "CONTRACTED_ENTRIES", 0.0))
        if simply:
            stack.enter_context(patch.object(sum_plans, "_is_quick", lambda *asked: False))
        yield from one_exact(drawn, model, rng)


def summed_in_dives(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Lower ends by dives, by whatever beliefs, and both ends where they come to their end."""
    beliefs = np.concatenate([np.empty(0), *(some_point(k, rng) for k in drawn.num_states)])
    dives = Diving(model, beliefs, max_table=float(rng.choice([2.0, 16.0, 1e6])))
    for _ in range(int(rng.integers(1, 30))):
        dives.step(UNLIMITED)
        yield Claimed("dives", *dives.ends)
        if dives.is_over:
            return


def summed_by_cutsets(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Lower ends by joint states of cutsets, however small the model, and both ends where all are summed."""
    shape = Shape(int(2 ** rng.integers(1, 6)), int(rng.integers(9)))
    origin = ProposalSource(MiniBucketBounds(model, shape, shape, 2.0**40), None, int(rng.integers(1, 9)))
    small = {"LEAST_ENTRIES": 2.0, "MOST_DRAWS": 1, "MOST_ORDERS": 2}
    with patch.multiple(cutset, **small):
        sums = CutsetSums(model, origin, seconds=float(rng.choice([1e-3, 1.0])), seed=int(rng.integers(99)))
        for _ in range(int(rng.integers(2, 20))):
            sums.step(UNLIMITED)
            yield Claimed("cutsets", *sums.ends)
            if sums.is_over:
                return


def one_exact(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    found = cz.exact(model, threads=1)
    yield Claimed("contraction", found.lower, found.upper)
    if found.log_z > -math.inf:
        yield from exact_marginals(drawn, "marginals of a contraction", found.marginals, found.upper - found.lower, rng)


def best_configuration(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """The ends of the largest score all along, and what is called optimal."""
    evidence = some_evidence(drawn, rng) if rng.random() < 0.4 else {}
    gap, seen = float(rng.choice([0.0, 1e-9, 0.5])), []
    options: dict[str, Any] = {"num_best": int(rng.choice([1, 1, 2, 5])), "gap": gap, "threads": 1}
    if rng.random() < 0.3:
        options["time"] = float(rng.choice([0.0, 1e-3, 1e-2]))
    if rng.random() < 0.2:
        options["memory"] = int(rng.choice([1, 1_000, 100_000]))
    try:
        found = cz.mode(model, evidence=said(drawn, evidence) or None, progress=seen.append, **options)
    except cz.errors.EvidenceError:
        yield Claimed("evidence refused", -math.inf, -math.inf, tuple(evidence.items()))
        return

    def largest(truth: Truth) -> Decimal | None:
        """As a float, which the score of a configuration is: rounded once."""
        top = (Truth(truth.drawn.given(evidence)) if evidence else truth).largest()
        return None if top is None else Decimal(float(top))

    # tables that say nothing are added to the constant, which is rounded once
    constants = [drawn.constant, *(float(t.flat[0]) for _, t in drawn.factors if t.min() == t.max() > -math.inf)]
    sizes = [*map(abs, constants), abs(found.score) if found.best else 0.0]
    off = 2.0**-52 * sum(sizes) if any(constants[1:]) else 0.0
    for moment in (*seen, *found.trace, found):
        yield Claimed("mode", moment.lower - off, moment.upper + off, value=largest)
    if found.is_optimal and found.best:
        tables = model.unary.flat, model.pairwise.flat, model.factors.flat
        size = abs(model.constant) + sum(float(np.abs(flat[np.isfinite(flat)]).sum()) for flat in tables)
        yield Claimed("mode, optimal", -math.inf, found.score + gap + MARGINAL_ERROR + 1e-12 * size, value=largest)


def event(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """The probability of states of a few variables, given others, and its logarithm."""
    evidence = some_evidence(drawn, rng) if rng.random() < 0.3 else {}
    states = {
        i: sorted(
            rng.choice(drawn.num_states[i], size=int(rng.integers(1, drawn.num_states[i] + 1)), replace=False).tolist()
        )
        for i in some_evidence(drawn, rng)
    }

    def log_probability(truth: Truth) -> Decimal | None:
        whole = truth.drawn.given(evidence)
        inside = Truth(whole.given(states)).log_z()
        return None if inside is None else difference(inside, Truth(whole).log_z())

    def probability(truth: Truth) -> Decimal:
        log_p = log_probability(truth)
        return Decimal(0) if log_p is None else log_p.exp()

    options: dict[str, Any] = {"gap": float(rng.choice([0.0, 0.01, 0.5])), "time": float(rng.choice([0.0, 0.01, 1.0]))}
    seen: list[cz.results.Probability] = []
    try:
        found = cz.probability(
            model, said(drawn, states), evidence=said(drawn, evidence), progress=seen.append, **options
        )
    except cz.errors.EvidenceError:
        yield Claimed("evidence refused", -math.inf, -math.inf, tuple(evidence.items()))
        return
    if Truth(drawn.given(evidence)).log_z() is not None:
        for each in (*seen, found):
            yield Claimed("probability", each.lower, each.upper, value=probability)
            yield Claimed("probability, its logarithm", each.log_lower, each.log_upper, value=log_probability)


def ratio(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Of Z of a model and of another: with other unary potentials, at another temperature, or with states ruled out."""
    kind = int(rng.integers(3))
    if kind == 0:
        own = [((i,), rng.normal(size=k)) for i, k in enumerate(drawn.num_states)] if not drawn.alike else []
        other = drawn._replace(factors=(*drawn.factors, *own))
    else:
        other = drawn.at(0.5) if kind == 1 else drawn.given(some_evidence(drawn, rng))
    options: dict[str, Any] = {"gap": float(rng.choice([0.0, 0.01, 0.5])), "time": float(rng.choice([0.0, 0.01, 1.0]))}

    def log_ratio(truth: Truth) -> Decimal | None:
        one = Truth(other).log_z()
        return None if one is None else difference(one, truth.log_z())

    try:
        found = cz.log_ratio(other.model(), model, **options)
    except cz.errors.EvidenceError:
        yield Claimed("evidence refused", -math.inf, -math.inf)
        return
    if Truth(drawn).log_z() is not None:
        yield Claimed("log_ratio", found.lower, found.upper, value=log_ratio)


def temperatures(drawn: Drawn, model: cz.Model, rng: Numbers) -> Iterator[Claimed]:
    """Lanes at inverse temperatures, by every method and by `sweep`."""
    betas = rng.choice([0.0, 2.0**-40, 0.25, 0.5, 1.0, 2.0, 8.0, 2.0**20], size=3, replace=False).tolist()
    method, name = some_method(rng)
    try:
        if rng.random() < 0.3:
            name, found = "sweep", cz.sweep(model, betas, time=float(rng.choice([0.01, 1.0])), threads=1)
        else:
            found = method(model, beta=betas, **some_options(name, rng))
    except cz.errors.OptionError as error:
        if "for potentials of up to" in str(error):
            return
        raise
    except cz.errors.ModelError:
        yield Claimed("model refused", -math.inf, -math.inf)
        return
    for beta, lower, upper in zip(
        betas, np.asarray(found.lower).tolist(), np.asarray(found.upper).tolist(), strict=True
    ):

        def log_z(truth: Truth, beta: float = beta) -> Decimal | None:
            return Truth(truth.drawn.at(beta)).log_z()

        yield Claimed(f"{name} at a temperature", lower, upper, value=log_z)


# How often each is asked, of the questions that a model is asked.
QUESTIONS: dict[str, tuple[Question, float]] = {
    question.__name__: (question, weight)
    for question, weight in (
        (one_method, 3.0),
        (every_state, 3.0),
        (lanes, 4.0),
        (starts, 1.2),
        (given_weights, 1.2),
        (clamped, 1.2),
        (bracket_at_once, 1.5),
        (bracket_without_sums, 0.8),
        (bracket_in_no_time, 0.3),
        (bracket_gone_on_with, 0.1),
        (intervals, 0.5),
        (solved, 2.0),
        (simplified, 2.0),
        (planar, 1.0),
        (contracted, 1.0),
        (summed_in_dives, 1.0),
        (summed_by_cutsets, 1.0),
        (best_configuration, 2.0),
        (event, 1.0),
        (ratio, 1.0),
        (temperatures, 1.5),
    )
}
