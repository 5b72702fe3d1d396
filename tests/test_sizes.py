"""Every named limit of size in the code, from both sides: where it can be set, it is set so that small models cross it;
else models are as large.  Answers agree on both sides, bounds hold, and what is beyond is refused in words."""

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import size_checks as checks
from size_checks import EXACT, set_everywhere, value_of

import clampz as cz

HOUSE = Path(cz.__file__).parent
# What a limit of size is called.
WORDS = {"MAX", "MOST", "LIMIT", "LARGE", "LARGEST", "LONGEST", "HUGE", "HOPELESS", "SMALL", "DENSE", "BLOCK", "CHUNK"}
WORDS |= {"PIECE", "BYTES", "ENTRIES", "FREE", "RANGE", "KEPT", "FULL", "WORD", "WORK", "STEPS", "TABLE"}
# Rooms that compute nothing of their own: limits of the pictures.
WITHOUT = ("plotting", "reporting", "cli", "interop")

# Named alike, and no limit of size.
NO_SIZES = {
    "display.formatting:MOST_DECIMALS": "decimals that are shown",
    "approximations.mini_buckets.clique_tables:SECONDS_PER_TABLE": "a rate",
    "exact_inference.contraction_trees:TABLE_SHARE": "a share",
    "exact_inference.insertion:SECONDS_PER_TABLE": "a rate",
    "presolve.simplify:SECONDS_PER_TABLE": "a rate",
    "errors:MOST_COMPARED": "names that an unknown one is compared with",
    "display.formatting:MOST_IN_FULL": "how a number is shown",
    "clamping.selectors.score_table:MOST_BEST": "variables that are shown",
    "model.html:SMALL": "what is shown of a small model",
    "display.html_repr:MOST_COLUMNS": "columns that are shown",
    "display.html_repr:MOST_ROWS": "rows that are shown",
    "display.html_repr:MOST_STATES": "states that are shown",
    "io.own_formats:MOST_STATES": "what a file may claim of a variable",
    "_kernels.jit:KEPT_STATES": "folders on disk",
    "_kernels.contraction.passes:MOST_LOST": "tests/exact_inference/test_contraction_trees.py",
    "exact_inference.contraction_trees:BLOCK_WORDS": "what blocks take",
    "model.problem:KEPT_BYTES": "what is kept of findings",
    "_kernels.elimination.forward_pass:OUT_OF_RANGE": "a status",
    "_kernels.simd_math:EXP_LIMIT": "tests/_kernels/test_simd_math.py",
    "_kernels.presolve.pools:ENTRIES": "a place in an array",
    "_kernels.presolve.pools:WORK": "a place in an array",
    "_kernels.presolve.worklist:FULL": "a status",
    "_kernels.presolve.tables:AT_MOST": "a tolerance",
    "approximations.bethe_bound:LARGEST_W": "where a sigmoid is 1 in floats",
    "approximations.edge_weights:NUM_TREES_LARGE": "trees at least",
    "approximations.iteration:MAX_INTERVAL": "sweeps between two looks",
    "approximations.mean_field:MOST_STARTS": "tests/runtime/test_options.py",
    "bounding.leaves.mini_bucket_bounds:LARGEST_LOSS": "nats",
    "bounding.options:LARGEST_TABLE": "tests/bounding/test_bound.py",
    "runtime.seeds:LARGEST_SEED": "tests/bounding/test_bound.py",
    "portfolio.scheduler:LONGEST": "seconds",
    "portfolio.scheduler:MOST_IDLE": "quanta",
    "bounding.strategies.cutset:MOST_ORDERS": "tries",
    "bounding.strategies.cutset:MOST_PLANS": "tries",
    "bounding.strategies.cutset:MOST_DRAWS": "draws that something is chosen by",
    "bounding.strategies.cutset:MOST_IDLE": "tries",
    "bounding.strategies.cutset:FEW_ENTRIES": "how many variables are fixed at once",
    "bounding.strategies.cutset:LEAST_ENTRIES": "sums that are not worth cutting further",
    "bounding.strategies.draws:PIECE_SHARE": "a share of the time",
    "bounding.strategies.draws:LONGEST": "seconds",
    "bounding.leaves.proposal_source:KEPT_SHARE": "tests/bounding/strategies/test_draws.py",
    "bounding.leaves.proposal_source:KEPT_BYTES": "an estimate of a size",
    "bounding.leaves.successive_halving:BYTES_PER_ENTRY": "an estimate of a size",
    "bounding.leaves.successive_halving:BYTES_PER_VARIABLE": "an estimate of a size",
    "bounding.strategies.diving:LARGEST_SUM": "tests/bounding/strategies/test_diving.py",
    "bounding.strategies.diving:LARGEST_PER_VARIABLE": "tests/bounding/strategies/test_diving.py",
    "bounding.strategies.diving:MOST_GAINED": "tests/bounding/strategies/test_diving.py",
    "bounding.strategies.diving:MOST_WAITING": "tests/bounding/strategies/test_diving.py",
    "bounding.strategies.cutset:MOST_WAITING": "tests/bounding/strategies/test_cutset.py",
    "bounding.strategies.cutset:MOST_AT_ONCE": "tests/bounding/strategies/test_cutset.py",
    "approximations.layouts:PIECE": "tests/approximations/test_stopping.py",
    "bounding.tree.frontier:BYTES_PER_ENTRY": "an estimate of a size",
    "bounding.tree.frontier:NODE_BYTES": "an estimate of a size",
    "bounding.checkpoints.checkpoint:LONGEST_LINE": "of a file that may be no checkpoint",
    "bounding.checkpoints.restore:LONGEST_NAME": "of a file that may be no checkpoint",
    "bounding.checkpoints.restore:SPARE_BYTES": "beside the memory that the caller allows",
    "bounding.checkpoints.restore:SUBMODEL_BYTES": "an estimate of a size",
    "clamping.selectors.entropy:MAX_SWEEPS": "sweeps",
    "clamping.selectors.edge_strength:MAX_TANH": "a strength",
    "clamping.selectors.edge_strength:DENSE_ROW": "a strength",
    "approximations.method_choice:DENSE_DEGREE": "what is advised, not what is computed",
    "_kernels.model_counting.circuits:MOST_DIGITS": "tests/model_counting/test_circuits.py",
    "model_counting.choice:MOST_TABLES": "tests/model_counting/test_choice.py",
    "model_counting.circuits:BYTES_PER_TOKEN": "an estimate of a size",
    "model_counting.encoding:MOST_LITERALS": "tests/model_counting/test_encoding.py",
    "model_counting.subprocesses:RESERVED_BYTES": "what a program reserves and does not use",
    "temperature_sweep.sweep:LARGEST_EXPONENT": "of a limit of regions, which have tests of their own",
    "temperature_sweep.sweep:LEAST_LIMIT": "tests/temperature_sweep/test_sweep.py",
    "exact_inference.contraction_trees:MOST_SEGMENTS": "cuts, tried one after another",
    "exact_inference.orders:SECONDS_PER_WORD": "a rate",
    "exact_inference.orders:WORK_IF_HUGE": "effort for an error message",
    "exact_inference.orders:WORK_TO_ASK": "a rate",
    "exact_inference.scopes:NO_LIMIT": "no limit",
    "map_inference.components:BYTES_PER_ENTRY": "an estimate of a size",
    "map_inference.mode:BYTES_PER_TABLE": "an estimate of a size",
    "map_inference.mode:SPARE_BYTES": "beside the memory that the caller allows",
    "map_inference.heuristics:LARGEST_SCALED": "a strength",
    "map_inference.branch_and_bound:NODE_BYTES": "an estimate of a size",
    "approximations.mini_buckets.structure:COUNTING_WORK": "tests/approximations/mini_buckets/test_structure.py",
    "approximations.mini_buckets.structure:MOST_COUNTED": "tests/approximations/mini_buckets/test_structure.py",
    "_kernels.planar.front_elimination:GROWTH_LIMIT": "how large entries may become",
    "generators:MAX_SWAPS": "tries",
    "planar.plans:BYTES_PER_EDGE": "an estimate of a size",
    "io.files:MAX_RATIO": "beside FREE_BYTES: tests/io/test_files.py has a file that is packed too well",
    "model.warm_starts:MOST": "a probability",
    "runtime.options:UNKNOWN_BYTES": "tests/test_platforms.py",
    "_kernels.mini_buckets.passes:LARGEST_V": "a logarithm of a weight",
    "_kernels.mini_buckets.passes:LARGEST_SHIFT": "tests/approximations/mini_buckets/test_descent.py",
    "bounding.leaves.successive_halving:TABLE_FOR_LITTLE": "tests/bounding/leaves/test_successive_halving.py",
    "approximations.mini_buckets.beliefs:MOST_NUMBERS": "tests/approximations/mini_buckets/test_descent.py",
    "approximations.mini_buckets.structure:ENTRIES": "an estimate of a size",
    "approximations.mini_buckets.structure:POWER_OF_LIMIT": "an estimate of a size",
    "approximations.mini_buckets.structure:KEPT_ENTRIES": "tests/approximations/mini_buckets/test_descent.py",
    "approximations.mini_buckets.structure:WORK_ENTRY": "bytes",
    "approximations.mini_buckets.structure:WORK_NUMBER": "bytes",
    "approximations.mini_buckets.structure:WORK_CLIQUE": "bytes",
    "approximations.mini_buckets.clique_tables:BLOCK": "tests/approximations/mini_buckets/test_passes.py",
    "approximations.mini_buckets.proposals:BLOCK_NUMBERS": "tests/approximations/mini_buckets/test_proposals.py",
    "approximations.mini_buckets.proposals:MOST_IN_BLOCK": "tests/approximations/mini_buckets/test_proposals.py",
    "sampling.proposals:BLOCK_STATES": "tests/sampling/test_sample.py",
    "sampling.proposals:ENTRY_BYTES": "an estimate of a size",
    "sampling.proposals:LARGEST_TABLE": "tests/sampling/test_sample.py",
    "sampling.proposals:MOST_EVALUATIONS": "evaluations",
    "sampling.proposals:SMALLEST_TABLE": "tests/sampling/test_sample.py",
    "sampling.request:NUMBER_BYTES": "an estimate of a size",
    "sampling.request:SAMPLE_BYTES": "an estimate of a size",
    "sampling.gibbs:STEPS_BEFORE": "steps",
    "sampling.sample:STATES_IN_BLOCK": "tests/sampling/test_sample.py",
    "sampling.choice:HOPELESS_DRAWS": "tests/sampling/test_sample.py",
    "sampling.choice:LONGEST_SECONDS": "seconds",
    "io.text_formats:LARGEST_PLAIN": "how a number is written",
}


def named_limits() -> set[str]:
    """Numbers in capitals at the top of a module whose names say that they limit a size."""
    found = set()
    for path in HOUSE.rglob("*.py"):
        room = path.relative_to(HOUSE).with_suffix("").parts
        for statement in ast.parse(path.read_bytes()).body if room[0] not in WITHOUT else ():
            if isinstance(statement, ast.Assign):
                names = [name.id for name in ast.walk(statement.targets[0]) if isinstance(name, ast.Name)]
                found |= {
                    f"{'.'.join(room)}:{name}" for name in names if name.isupper() and WORDS & set(name.split("_"))
                }
    return {where for where in found if isinstance(value_of(where), int | float)}


class Setting(NamedTuple):
    """Values to give a limit, and what must then come out as before; within `rtol`."""

    values: tuple[float, ...]
    answers: Callable[..., list[float]]
    rtol: float = EXACT


SET = {
    "_kernels.elimination.greedy_order:DENSE_LIMIT": Setting((0, 1, 29, 30, 31), checks.exact_sums),
    "approximations.edge_weights:LARGE_GRAPH": Setting((0, 49, 50), checks.bounds_of_methods),
    "approximations.edge_weights:QUICKLY_DENSE": Setting((0, 24, 25), checks.bounds_of_methods),
    "approximations.edge_weights:MAX_BLOCK": Setting((1, 9, 18, 19), checks.weights_of_components),
    "approximations.edge_weights:MAX_CHECKED": Setting((0, 24, 25), checks.bounds_of_methods),
    "approximations.edge_weights:MAX_DENSE": Setting((0, 24, 25), checks.bounds_of_methods),
    "approximations.mean_field:MAX_BLOCK": Setting((8, 20, 21), checks.lanes_and_threads),
    "approximations.mean_field:MAX_SEARCH": Setting((0, 1, 7, 8, 9), checks.starts_of_mean_field),
    "bounding.leaves.successive_halving:SMALLEST_TABLE": Setting((2, 64), checks.brackets),
    "bounding.leaves.successive_halving:TABLE_FOR_NOTHING": Setting((2, 64), checks.brackets),
    "bounding.leaves.successive_halving:FIRST_TABLE": Setting((8, 2**20), checks.brackets),
    "bounding.leaves.successive_halving:LARGE_MODEL": Setting((0, 10), checks.brackets),
    "bounding.tree.frontier:SMALL_COMPONENT": Setting((0.0, 1.0, 7.0), checks.brackets),
    "bounding.tree.frontier:MOST_COMPONENTS": Setting((2, 3), checks.brackets),
    "bounding.marginals.goal:MOST_SEARCHES": Setting((0, 1, 2), checks.intervals),
    "bounding.tree.branching:MOST_PIECES": Setting((1, 2), checks.brackets),
    "bounding.strategies.bethe:MOST_BRANCHES": Setting((0.0, 2.0), checks.brackets),
    "bounding.strategies.bethe:MOST_CLAMPS": Setting((0, 1), checks.brackets),
    "bounding.strategies.exact_sum:MOST_BOUNDED": Setting((0, 2), checks.brackets),
    "bounding.tree.nodes:MOST_STATES": Setting((1, 2, 5), checks.brackets),
    "clamping.cost:MAX_CLAMPS": Setting((0, 1), checks.bounds_of_methods),
    "clamping.clamping:BLOCK": Setting((1, 7, 8, 31, 32, 33), checks.clamped, 1e-6),
    "clamping.selectors.edge_strength:MAX_DENSE": Setting((0, 59, 60), checks.walks, 1e-3),
    "clamping.selectors.edge_strength:MAX_DENSE_GRAPH": Setting((0, 59, 60), checks.walks, 1e-3),
    "clamping.selectors.edge_strength:MAX_STEPS": Setting((0,), checks.walks, 1e-3),
    "model_counting.encoding:MOST_IN_PAIRS": Setting((0, 4), checks.counts),
    "model_counting.ganak:MOST_BITS": Setting((30, 900), checks.counts),
    "exact_inference.cost:CACHED_ENTRIES": Setting((0.0, 2.0**6), checks.brackets),
    "exact_inference.cost:TELLING_ENTRIES": Setting((0.0,), checks.brackets),
    "exact_inference.lanes:KEPT_BYTES": Setting((0,), checks.exact_sums),
    "exact_inference.lanes:LARGE_LANE": Setting((0,), checks.exact_sums),
    "exact_inference.orders:HOPELESS_ENTRIES": Setting((2.0**30,), checks.exact_sums),
    "exact_inference.orders:HUGE_ENTRIES": Setting((0.0,), checks.exact_sums),
    "exact_inference.orders:LARGE_GRAPH": Setting((0, 29, 30), checks.exact_sums),
    "exact_inference.orders:MAX_WORK": Setting((0.0,), checks.exact_sums),
    "exact_inference.orders:MIN_WORK": Setting((0.0, 1e7), checks.exact_sums),
    "exact_inference.orders:CONTRACTED_ENTRIES": Setting((0.0, 2.0**60), checks.contracted_sums),
    "runtime.options:SMALL_BYTES": Setting((0,), checks.exact_sums),
    "exact_inference.cuts:MOST_MEMBERS": Setting((0, 100), checks.brackets),
    "exact_inference.slicing:MOST_AT_ONCE": Setting((0, 1), checks.brackets),
    "exact_inference.slicing:MOST_PLANNED": Setting((0.0,), checks.brackets),
    "exact_inference.slicing:MOST_VARIABLES": Setting((0, 24, 25), checks.brackets),
    "exact_inference.slicing:MOST_SLICES": Setting((0, 2, 4), checks.brackets),
    "exact_inference.slicing:MOST_ENTRIES": Setting((0.0, 2.0**6), checks.brackets),
    "learning.likelihood:LANE_ENTRIES": Setting((1, 200), checks.learned, 1e-6),
    "learning.likelihood:KEPT_ENTRIES": Setting((0,), checks.learned, 1e-3),
    "io.tokens:PIECE": Setting((1, 2, 7, 64), checks.written_and_read),
    "map_inference.components:MOST_PARTS": Setting((1, 2), checks.modes),
    "map_inference.strategies.mini_buckets:FIRST_TABLE": Setting((2, 2**11), checks.modes),
    "map_inference.strategies.mini_buckets:LARGEST_TABLE": Setting((2**8, 2**11), checks.modes),
    "map_inference.branch_and_bound:MOST_BACKTRACKS": Setting((1, 2**40), checks.modes),
    "map_inference.branch_and_bound:MOST_NODES": Setting((1, 2**12), checks.modes),
    "presolve.simplify:LARGE_MODEL": Setting((0, 10**9), checks.simplified),
    "presolve.simplify:LEAST_WORK": Setting((0, 100, 10**9), checks.simplified),
    "presolve.simplify:WORK_PER_ENTRY": Setting((0, 1, 10**6), checks.simplified),
    "exact_inference.plans:WORTHWHILE_ENTRIES": Setting((0.0, 2.0**40), checks.exact_sums),
    "exact_inference.marginal_queries:QUICK_ENTRIES": Setting((0.0, 2.0**40), checks.exact_sums),
    "exact_inference.plans:HOPELESS_ENTRIES": Setting((0.0, 64.0), checks.exact_sums),
    "model.lane_memory:SMALL_MODEL": Setting((0, 10), checks.bounds_of_methods),
    "runtime.workers:MAX_BLOCK": Setting((8, 16, 24), checks.lanes_and_threads),
    "approximations.mini_buckets.batched:ENTRIES_PER_LANE": Setting((0, 1, 10**6), checks.lanes_of_regions),
    "runtime.workers:MIN_RANGE": Setting((1, 8, 64), checks.lanes_and_threads),
    "runtime.workers:SUM_BLOCK": Setting((8, 16, 64), checks.lanes_and_threads),
}


@cache
def usual(answers: Callable[..., list[float]]) -> list[float]:
    """What comes out with all limits as they are."""
    return answers()


# The lowest value of each, which small models cross most often; the others are tried with the large models.
VALUES = [
    pytest.param(where, value, marks=[] if value == setting.values[0] else pytest.mark.large)
    for where, setting in SET.items()
    for value in setting.values
]


@pytest.mark.parametrize(("where", "value"), VALUES)
def test_answers_agree_wherever_the_limit_is(where, value, monkeypatch):
    setting = SET[where]
    wanted = usual(setting.answers)
    set_everywhere(monkeypatch, where, value)
    assert value_of(where) == value
    np.testing.assert_allclose(setting.answers(), wanted, setting.rtol, setting.rtol)


AT_SIZE: dict[str, Callable[[float], None]] = {
    "_kernels.contraction.steps:LONGEST_RUN": checks.of_runs,
    "_kernels.elimination.forward_pass:LINEAR_RANGE": checks.of_strength,
    "_kernels.elimination.greedy_order:DENSE_LIMIT": checks.in_the_matrix_of_bits,
    "_kernels.elimination.greedy_order:HOPELESS": checks.of_width,
    "_kernels.bits:WORD": checks.in_the_matrix_of_bits,
    "_kernels.elimination.plan:BLOCK": checks.of_states,
    "_kernels.elimination.steps:PIECE": checks.of_pieces,
    "_kernels.approximations.message_passing.binary:CHUNK": checks.of_degree,
    "_kernels.approximations.message_passing.binary:FULL_LANES": checks.of_lanes,
    "_kernels.approximations.message_passing.binary:SHORT_FORM_LIMIT": checks.of_strength,
    "_kernels.planar.cities:MOST_SIDES": checks.of_sides,
    "_kernels.planar.scaling:MOST_COLUMNS": checks.of_columns,
    "_kernels.presolve.pools:MOST_AXES": checks.of_axes_of_a_sum,
    "_kernels.presolve.pools:MOST_PARTS": checks.of_parts_of_a_sum,
    "_kernels.presolve.sum_out:MOST_TERMS": checks.of_terms_of_a_sum,
    "approximations.edge_weights:MAX_CHECKED": checks.on_cycles,
    "approximations.edge_weights:MAX_DENSE": checks.on_cycles,
    "approximations.mean_field:MAX_BLOCK": checks.of_lanes,
    "exact_inference.sums:MOST_COUNTED": checks.of_width,
    "io.fg:FREE_ENTRIES": checks.of_free_entries,
    "io.files:FREE_BYTES": checks.of_unpacked_bytes,
    "io.text_formats:FREE_STATES": checks.of_free_states,
    "io.text_formats:MAX_AXES": checks.of_axes,
    "io.text_formats:MAX_CONSTANTS": checks.of_constants,
    "io.tokens:LARGEST_WHOLE": checks.of_label,
    "io.tokens:LONGEST_TOKEN": checks.of_token_length,
    "model.checks:LARGEST_POTENTIAL": checks.of_potential,
    "model.checks:MOST_MESSAGES": checks.of_numbers,
    "numerics:LARGEST_LOG": checks.of_strength,
    "runtime.workers:MAX_BLOCK": checks.of_lanes,
    "runtime.workers:MIN_RANGE": checks.of_messages,
    "runtime.workers:SUM_BLOCK": checks.of_slots,
}


CHECKED = [
    pytest.param(where, marks=pytest.mark.checked) if where.startswith(("_kernels.", "workers:")) else where
    for where in AT_SIZE
]


@pytest.mark.parametrize("where", CHECKED)
def test_nothing_changes_at_the_limit(where):
    max_table = value_of(where)
    assert isinstance(max_table, int | float)
    for size in (
        (max_table - 1, max_table, max_table + 1)
        if max_table < 1e15
        else (max_table * 0.99, max_table, max_table * 1.01)
    ):
        AT_SIZE[where](size)


def test_every_limit_is_here():
    """A new one needs a line in a table above."""
    known = SET.keys() | AT_SIZE.keys() | NO_SIZES.keys()
    assert sorted(known ^ named_limits()) == []
