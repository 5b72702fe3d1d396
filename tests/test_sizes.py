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
WORDS |= {"PIECE", "BYTES", "ENTRIES", "FREE", "RANGE", "KEPT", "FULL", "WORD", "WORK", "STEPS"}
# Rooms that compute nothing of their own: limits of the pictures.
WITHOUT = ("plotting", "reporting", "cli", "interop")

# Named alike, and no limit of size.
NO_SIZES = {
    "wording:MOST_DECIMALS": "decimals that are shown",
    "errors:MOST_COMPARED": "names that an unknown one is compared with",
    "wording:MOST_IN_FULL": "how a number is shown",
    "clamping.selectors.scored:MOST_BEST": "variables that are shown",
    "model.cards:SMALL": "what is shown of a small model",
    "showing:MOST_COLUMNS": "columns that are shown",
    "showing:MOST_ROWS": "rows that are shown",
    "showing:MOST_STATES": "states that are shown",
    "io.lossless:MOST_STATES": "what a file may claim of a variable",
    "mini_buckets.tables:PIECE": "entries between two looks at Ctrl-C",
    "_kernels.jit:KEPT_STATES": "folders on disk",
    "_kernels.contraction_passes:MOST_LOST": "tests/elimination/test_contraction.py",
    "elimination.contraction:BLOCK_WORDS": "what blocks take",
    "_kernels.elimination_forwards:OUT_OF_RANGE": "a status",
    "_kernels.simd_math:EXP_LIMIT": "tests/kernels/test_simd_math.py",
    "_kernels.simplifying_pools:ENTRIES": "a place in an array",
    "_kernels.simplifying_pools:WORK": "a place in an array",
    "_kernels.simplifying_sums:FULL": "a status",
    "_kernels.simplifying_tables:AT_MOST": "a tolerance",
    "approximations.bethe_bound:LARGEST_W": "where a sigmoid is 1 in floats",
    "approximations.edge_weights:NUM_TREES_LARGE": "trees at least",
    "approximations.iteration:MAX_INTERVAL": "sweeps between two looks",
    "approximations.mean_field:MOST_STARTS": "tests/test_options.py",
    "bracketing.parts:MAX_SWEEPS": "sweeps",
    "bracketing.regions:LARGEST_LOSS": "nats",
    "bracketing.options:LARGEST_LIMIT": "tests/bracketing/test_running.py",
    "generators:LARGEST_SEED": "tests/bracketing/test_running.py",
    "bracketing.set_sums:MOST_IDLE": "rounds",
    "bracketing.separators:MOST_ORDERS": "tries",
    "bracketing.separators:MOST_PLANS": "tries",
    "bracketing.separators:MOST_DRAWS": "draws that something is chosen by",
    "bracketing.separators:MOST_IDLE": "tries",
    "bracketing.separators:FEW_ENTRIES": "how many variables are fixed at once",
    "bracketing.separators:LEAST_ENTRIES": "sums that are not worth cutting further",
    "bracketing.separators:KEPT_BYTES": "an estimate of a size",
    "bracketing.separators:KEPT_SHARE": "a share of the memory",
    "bracketing.estimating:PIECE_SHARE": "a share of the time",
    "bracketing.estimating:LONGEST": "seconds",
    "bracketing.estimating:KEPT_SHARE": "tests/bracketing/test_estimating.py",
    "bracketing.estimating:KEPT_BYTES": "an estimate of a size",
    "bracketing.ladder:BYTES_PER_ENTRY": "an estimate of a size",
    "bracketing.ladder:BYTES_PER_VARIABLE": "an estimate of a size",
    "bracketing.dives:LARGEST_SUM": "tests/bracketing/test_dives.py",
    "bracketing.dives:LARGEST_PER_VARIABLE": "tests/bracketing/test_dives.py",
    "bracketing.dives:MOST_GAINED": "tests/bracketing/test_dives.py",
    "bracketing.dives:MOST_WAITING": "tests/bracketing/test_dives.py",
    "bracketing.separators:MOST_WAITING": "tests/bracketing/test_separators.py",
    "bracketing.separators:MOST_AT_ONCE": "tests/bracketing/test_separators.py",
    "approximations.layouts:PIECE": "tests/approximations/test_stopping.py",
    "bracketing.frontier:BYTES_PER_ENTRY": "an estimate of a size",
    "bracketing.frontier:NODE_BYTES": "an estimate of a size",
    "bracketing.checkpoints:LONGEST_LINE": "of a file that may be no checkpoint",
    "bracketing.taking_up:SPARE_BYTES": "beside the memory that the caller allows",
    "bracketing.taking_up:SUBMODEL_BYTES": "an estimate of a size",
    "clamping.selectors.entropy:MAX_SWEEPS": "sweeps",
    "clamping.selectors.strength:MAX_TANH": "a strength",
    "clamping.selectors.strength:DENSE_ROW": "a strength",
    "approximations.accuracy:DENSE_DEGREE": "what is advised, not what is computed",
    "_kernels.circuits:MOST_DIGITS": "tests/counting/test_circuits.py",
    "counting.choice:MOST_TABLES": "tests/counting/test_choice.py",
    "counting.circuits:BYTES_PER_TOKEN": "an estimate of a size",
    "counting.encoding:MOST_LITERALS": "tests/counting/test_encoding.py",
    "counting.programs:RESERVED_BYTES": "what a program reserves and does not use",
    "sweeping.call:LARGEST_EXPONENT": "of a limit of regions, which have tests of their own",
    "sweeping.call:LEAST_LIMIT": "tests/sweeping/test_sweep.py",
    "elimination.contraction:MOST_SEGMENTS": "cuts, tried one after another",
    "elimination.orders:SECONDS_PER_WORD": "a rate",
    "elimination.orders:WORK_IF_HUGE": "effort for an error message",
    "elimination.orders:WORK_TO_ASK": "a rate",
    "elimination.plans:NO_LIMIT": "no limit",
    "maximising.call:BYTES_PER_ENTRY": "an estimate of a size",
    "maximising.call:BYTES_PER_TABLE": "an estimate of a size",
    "maximising.call:MOST_FIRST_KICKS": "tries",
    "maximising.call:SPARE_BYTES": "beside the memory that the caller allows",
    "maximising.heuristics:LARGEST_SCALED": "a strength",
    "maximising.parts:MOST_KICKS": "tries",
    "maximising.searching:NODE_BYTES": "an estimate of a size",
    "mini_buckets.structure:COUNTING_WORK": "tests/mini_buckets/test_structure.py",
    "mini_buckets.structure:MOST_COUNTED": "tests/mini_buckets/test_structure.py",
    "_kernels.planar_pairs:GROWTH_LIMIT": "how large entries may become",
    "generators:MAX_SWAPS": "tries",
    "planar.plans:BYTES_PER_EDGE": "an estimate of a size",
    "io.files:MAX_RATIO": "beside FREE_BYTES: tests/io/test_files.py has a file that is packed too well",
    "model.starts:MOST": "a probability",
    "options:UNKNOWN_BYTES": "tests/test_platforms.py",
    "bracketing.beginning:LARGE_SHARE": "a share of the time",
    "bracketing.search:LONGEST_SHARE": "a share of the time",
    "bracketing.beginning:LONGEST_QUICK": "seconds",
    "bracketing.beginning:LONGEST_COUNTING": "seconds",
    "_kernels.mini_buckets_passes:LARGEST_V": "a logarithm of a weight",
    "_kernels.mini_buckets_passes:LARGEST_SHIFT": "tests/mini_buckets/test_descent.py",
    "bracketing.ladder:LIMIT_FOR_LITTLE": "tests/bracketing/test_ladder.py",
    "mini_buckets.beliefs:MOST_NUMBERS": "tests/mini_buckets/test_descent.py",
    "mini_buckets.structure:ENTRIES": "an estimate of a size",
    "mini_buckets.structure:POWER_OF_LIMIT": "an estimate of a size",
    "mini_buckets.structure:KEPT_ENTRIES": "tests/mini_buckets/test_descent.py",
    "mini_buckets.structure:WORK_ENTRY": "bytes",
    "mini_buckets.structure:WORK_NUMBER": "bytes",
    "mini_buckets.structure:WORK_CLIQUE": "bytes",
    "mini_buckets.tables:BLOCK": "tests/mini_buckets/test_passes.py",
    "mini_buckets.proposals:BLOCK_NUMBERS": "tests/mini_buckets/test_proposals.py",
    "mini_buckets.proposals:MOST_IN_BLOCK": "tests/mini_buckets/test_proposals.py",
    "sampling.proposing:BLOCK_STATES": "tests/sampling/test_sampling.py",
    "sampling.proposing:ENTRY_BYTES": "an estimate of a size",
    "sampling.proposing:LARGEST_LIMIT": "tests/sampling/test_sampling.py",
    "sampling.proposing:MOST_EVALUATIONS": "evaluations",
    "sampling.proposing:SMALLEST_LIMIT": "tests/sampling/test_sampling.py",
    "sampling.request:NUMBER_BYTES": "an estimate of a size",
    "sampling.request:SAMPLE_BYTES": "an estimate of a size",
    "sampling.chains:STEPS_BEFORE": "steps",
    "sampling.call:STATES_IN_BLOCK": "tests/sampling/test_sampling.py",
    "sampling.ways:HOPELESS_DRAWS": "tests/sampling/test_sampling.py",
    "sampling.ways:LONGEST_SECONDS": "seconds",
    "io.potentials:LARGEST_PLAIN": "how a number is written",
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
    "_kernels.elimination_order:DENSE_LIMIT": Setting((0, 1, 29, 30, 31), checks.exact_sums),
    "approximations.edge_weights:LARGE_GRAPH": Setting((0, 49, 50), checks.bounds_of_methods),
    "approximations.edge_weights:QUICKLY_DENSE": Setting((0, 24, 25), checks.bounds_of_methods),
    "approximations.edge_weights:MAX_BLOCK": Setting((1, 9, 18, 19), checks.weights_of_components),
    "approximations.edge_weights:MAX_CHECKED": Setting((0, 24, 25), checks.bounds_of_methods),
    "approximations.edge_weights:MAX_DENSE": Setting((0, 24, 25), checks.bounds_of_methods),
    "approximations.mean_field:MAX_BLOCK": Setting((8, 20, 21), checks.lanes_and_threads),
    "approximations.mean_field:MAX_SEARCH": Setting((0, 1, 7, 8, 9), checks.starts_of_mean_field),
    "bracketing.ladder:SMALLEST_LIMIT": Setting((2, 64), checks.brackets),
    "bracketing.ladder:LIMIT_FOR_NOTHING": Setting((2, 64), checks.brackets),
    "bracketing.marginals:LARGEST_SHARED": Setting((8, 16), checks.intervals),
    "bracketing.ladder:FIRST_LIMIT": Setting((8, 2**20), checks.brackets),
    "bracketing.ladder:LARGE_MODEL": Setting((0, 10), checks.brackets),
    "bracketing.regions:MOST_EDGES": Setting((0, 31, 32), checks.brackets),
    "bracketing.frontier:SMALL_COMPONENT": Setting((0.0, 1.0, 7.0), checks.brackets),
    "bracketing.frontier:MOST_COMPONENTS": Setting((2, 3), checks.brackets),
    "bracketing.marginals:MOST_SEARCHES": Setting((0, 1, 2), checks.intervals),
    "bracketing.parts:KEPT_SUMS": Setting((1, 2), checks.brackets),
    "bracketing.next_work:MOST_PIECES": Setting((1, 2), checks.brackets),
    "bracketing.beginning:MOST_BETHE_BRANCHES": Setting((0.0, 2.0), checks.brackets),
    "bracketing.beginning:MOST_BETHE_CLAMPS": Setting((0, 1), checks.brackets),
    "bracketing.whole:MOST_BOUNDED": Setting((0, 2), checks.brackets),
    "bracketing.tree:MOST_STATES": Setting((1, 2, 5), checks.brackets),
    "clamping.cost:MAX_CLAMPS": Setting((0, 1), checks.bounds_of_methods),
    "clamping.growth:BLOCK": Setting((1, 7, 8, 31, 32, 33), checks.clamped, 1e-6),
    "clamping.selectors.strength:MAX_DENSE": Setting((0, 59, 60), checks.walks, 1e-3),
    "clamping.selectors.strength:MAX_DENSE_GRAPH": Setting((0, 59, 60), checks.walks, 1e-3),
    "clamping.selectors.strength:MAX_STEPS": Setting((0,), checks.walks, 1e-3),
    "counting.encoding:MOST_IN_PAIRS": Setting((0, 4), checks.counts),
    "counting.ganak:MOST_BITS": Setting((30, 900), checks.counts),
    "elimination.cost:CACHED_ENTRIES": Setting((0.0, 2.0**6), checks.brackets),
    "elimination.cost:TELLING_ENTRIES": Setting((0.0,), checks.brackets),
    "elimination.exact:KEPT_BYTES": Setting((0,), checks.exact_sums),
    "elimination.exact:LARGE_LANE": Setting((0,), checks.exact_sums),
    "elimination.orders:HOPELESS_ENTRIES": Setting((2.0**30,), checks.exact_sums),
    "elimination.orders:HUGE_ENTRIES": Setting((0.0,), checks.exact_sums),
    "elimination.orders:LARGE_GRAPH": Setting((0, 29, 30), checks.exact_sums),
    "elimination.orders:MAX_WORK": Setting((0.0,), checks.exact_sums),
    "elimination.orders:MIN_WORK": Setting((0.0, 1e7), checks.exact_sums),
    "elimination.orders:CONTRACTED_ENTRIES": Setting((0.0, 2.0**60), checks.contracted_sums),
    "options:SMALL_BYTES": Setting((0,), checks.exact_sums),
    "elimination.cuts:MOST_MEMBERS": Setting((0, 100), checks.brackets),
    "elimination.slice_plans:MOST_AT_ONCE": Setting((0, 1), checks.brackets),
    "elimination.slice_plans:MOST_PLANNED": Setting((0.0,), checks.brackets),
    "elimination.slice_plans:MOST_VARIABLES": Setting((0, 24, 25), checks.brackets),
    "elimination.slice_plans:MOST_SLICES": Setting((0, 2, 4), checks.brackets),
    "elimination.slice_plans:MOST_ENTRIES": Setting((0.0, 2.0**6), checks.brackets),
    "learning.likelihood:LANE_ENTRIES": Setting((1, 200), checks.learned, 1e-6),
    "learning.likelihood:KEPT_ENTRIES": Setting((0,), checks.learned, 1e-3),
    "io.tokens:PIECE": Setting((1, 2, 7, 64), checks.written_and_read),
    "maximising.call:MOST_PARTS": Setting((1, 2), checks.modes),
    "maximising.parts:FIRST_LIMIT": Setting((2, 2**11), checks.modes),
    "maximising.parts:LARGEST_LIMIT": Setting((2**8, 2**11), checks.modes),
    "maximising.searching:MOST_BACKTRACKS": Setting((1, 2**40), checks.modes),
    "maximising.searching:MOST_NODES": Setting((1, 2**12), checks.modes),
    "simplifying.call:LARGE_MODEL": Setting((0, 10**9), checks.simplified),
    "simplifying.call:LEAST_WORK": Setting((0, 100, 10**9), checks.simplified),
    "simplifying.call:WORK_PER_ENTRY": Setting((0, 1, 10**6), checks.simplified),
    "summing.plans:WORTHWHILE_ENTRIES": Setting((0.0, 2.0**40), checks.exact_sums),
    "summing.blocks:QUICK_ENTRIES": Setting((0.0, 2.0**40), checks.exact_sums),
    "summing.plans:HOPELESS_ENTRIES": Setting((0.0, 64.0), checks.exact_sums),
    "signature:SMALL_MODEL": Setting((0, 10), checks.bounds_of_methods),
    "workers:MAX_BLOCK": Setting((8, 16, 24), checks.lanes_and_threads),
    "mini_buckets.together:ENTRIES_PER_LANE": Setting((0, 1, 10**6), checks.lanes_of_regions),
    "workers:MIN_RANGE": Setting((1, 8, 64), checks.lanes_and_threads),
    "workers:SUM_BLOCK": Setting((8, 16, 64), checks.lanes_and_threads),
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
    "_kernels.contraction_steps:LONGEST_RUN": checks.of_runs,
    "_kernels.elimination_forwards:LINEAR_RANGE": checks.of_strength,
    "_kernels.elimination_order:DENSE_LIMIT": checks.in_the_matrix_of_bits,
    "_kernels.elimination_order:HOPELESS": checks.of_width,
    "_kernels.bits:WORD": checks.in_the_matrix_of_bits,
    "_kernels.elimination_plan:BLOCK": checks.of_states,
    "_kernels.elimination_steps:PIECE": checks.of_pieces,
    "_kernels.messages:CHUNK": checks.of_degree,
    "_kernels.messages:FULL_LANES": checks.of_lanes,
    "_kernels.messages:SHORT_FORM_LIMIT": checks.of_strength,
    "_kernels.planar_cities:MOST_SIDES": checks.of_sides,
    "_kernels.planar_scales:MOST_COLUMNS": checks.of_columns,
    "_kernels.simplifying_pools:MOST_AXES": checks.of_axes_of_a_sum,
    "_kernels.simplifying_pools:MOST_PARTS": checks.of_parts_of_a_sum,
    "_kernels.simplifying_sums:MOST_TERMS": checks.of_terms_of_a_sum,
    "approximations.edge_weights:MAX_CHECKED": checks.on_cycles,
    "approximations.edge_weights:MAX_DENSE": checks.on_cycles,
    "approximations.mean_field:MAX_BLOCK": checks.of_lanes,
    "bracketing.regions:MOST_EDGES": checks.of_edges,
    "elimination.plans:MOST_COUNTED": checks.of_width,
    "io.fg:FREE_ENTRIES": checks.of_free_entries,
    "io.files:FREE_BYTES": checks.of_unpacked_bytes,
    "io.potentials:FREE_STATES": checks.of_free_states,
    "io.potentials:MAX_AXES": checks.of_axes,
    "io.potentials:MAX_CONSTANTS": checks.of_constants,
    "io.tokens:LARGEST_WHOLE": checks.of_label,
    "io.tokens:LONGEST_TOKEN": checks.of_token_length,
    "model.checks:LARGEST_POTENTIAL": checks.of_potential,
    "model.checks:MOST_MESSAGES": checks.of_numbers,
    "numerics:LARGEST_LOG": checks.of_strength,
    "workers:MAX_BLOCK": checks.of_lanes,
    "workers:MIN_RANGE": checks.of_messages,
    "workers:SUM_BLOCK": checks.of_slots,
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
