"""Time per message of the kernels, against the bare arithmetic that a message cannot do without, measured in the same
run on the same thread.

    python benchmarks/kernels.py [--quick]

A binary message is one exp, one log and one division: the bare loop does only those, on as many values, from one
contiguous array to another. A message over L labels is L x L multiply-adds (and L exp and L log, which the second bare
loop adds).
"""

from collections.abc import Callable

import numpy as np
from numba import njit

import clampz as cz
from clampz._kernels.jit import SAFE_MATH
from clampz._kernels.simd_math import exp, log, log_ratio, sigmoid
from clampz.approximations.edge_weights import uniform_weights
from clampz.approximations.layouts import TableLayout, layout_of
from clampz.approximations.mean_field import BinaryField, MeanFieldLanes, TableField
from clampz.approximations.message_passing import BinaryLanes, GeneralLanes
from clampz.runtime.budget import UNLIMITED
from clampz.runtime.workers import Workers
from timing import Claim, alone, interleaved, print_table, worst

SIDE = 9
SWEEPS = 20

# compiled as the kernels are, but not cached: a cache would outlive changes of simd_math
bare = njit(nogil=True, error_model="numpy", fastmath=SAFE_MATH)


@bare
def bare_fused(h, s, c, out, repeats):
    for _ in range(repeats):
        for k in range(h.size):
            e = exp(-h[k])
            out[k] = log_ratio(s + c * e, c + s * e)


@bare
def bare_separate(h, s, c, out, repeats):
    for _ in range(repeats):
        for k in range(h.size):
            e = exp(-h[k])
            out[k] = log((s + c * e) / (c + s * e))


@bare
def bare_sigmoid(h, out, repeats):
    for _ in range(repeats):
        for k in range(h.size):
            out[k] = sigmoid(h[k])


@bare
def bare_products(factor, cavity, out, repeats):
    """out = factor[e] cavity for every message e, (2m, L, L) times (L, B): the innermost loop over lanes, or over
    states where there is one lane."""
    for _ in range(repeats):
        for e in range(factor.shape[0]):
            out[:] = 0.0
            if cavity.shape[1] == 1:
                for y in range(factor.shape[1]):
                    for x in range(factor.shape[2]):
                        out[x, 0] += factor[e, y, x] * cavity[y, 0]
            else:
                for x in range(factor.shape[2]):
                    for y in range(factor.shape[1]):
                        for b in range(cavity.shape[1]):
                            out[x, b] += factor[e, y, x] * cavity[y, b]


@bare
def bare_exp_log(h, out, repeats):
    for _ in range(repeats):
        for k in range(h.size):
            out[k] = exp(h[k])
        for k in range(h.size):
            out[k] = log(out[k])


def aligned(rows: int, columns: int) -> np.ndarray:
    """Zeros that begin at a cache line: where rows straddle two, the bare products take up to three times as long."""
    memory = np.zeros(rows * columns + 8)
    first = -memory.ctypes.data % 64 // 8
    return memory[first : first + rows * columns].reshape(rows, columns)


def batch_of(num_lanes: int, **drawing: object) -> cz.Batch:
    """A toroidal grid with random fields of each lane's own."""
    model = cz.generators.grid(SIDE, SIDE, weights=(-6, 6), rng=0, **drawing)
    return cz.Batch(
        model, model.unary.flat[:, None] + np.random.default_rng(0).uniform(-1, 1, (len(model.unary.flat), num_lanes))
    )


def sweeps(lanes: BinaryLanes | GeneralLanes | MeanFieldLanes) -> Callable[[], None]:
    """SWEEPS sweeps, in one call of the kernel."""
    return lambda: lanes.sweep(SWEEPS, budget=UNLIMITED)


def clamped_batch(num_lanes: int) -> cz.Batch:
    """The same grid, three variables of each lane's own clamped."""
    rng = np.random.default_rng(4)
    sets = [{int(i): int(rng.integers(2)) for i in rng.choice(SIDE * SIDE, 3, replace=False)} for _ in range(num_lanes)]
    return cz.Batch.from_evidence(cz.generators.grid(SIDE, SIDE, weights=(-6, 6), rng=0), sets)


def binary(num_lanes: int, repeats: int) -> dict[str, float]:
    """Nanoseconds per message and lane (mean field and sigmoid: per variable and lane) of the kernels and of the bare
    loops."""
    batch = batch_of(num_lanes)
    topology, layout = batch.model.topology, layout_of(batch, budget=UNLIMITED)
    rho = uniform_weights(topology, budget=UNLIMITED)
    trw, bethe, clamped = (
        BinaryLanes(p, Workers(1), budget=UNLIMITED)
        for p in (layout, layout, layout_of(clamped_batch(num_lanes), budget=UNLIMITED))
    )
    trw.set_counting(rho[:, None], budget=UNLIMITED)
    clamped.set_counting(rho[:, None], budget=UNLIMITED)
    bethe.set_counting(
        np.ones((len(rho), 1)), 1.0 + np.bincount(topology.edges.ravel(), np.repeat(1.0 - rho, 2)), budget=UNLIMITED
    )
    field = BinaryField(layout, np.random.default_rng(1).uniform(-0.5, 0.5, layout.theta.shape), Workers(1))
    num_messages = 2 * topology.num_edges * num_lanes
    h, x = (
        np.random.default_rng(2).uniform(-6, 6, size) for size in (num_messages, topology.num_variables * num_lanes)
    )
    out, out_x = np.empty_like(h), np.empty_like(x)
    s = 1 / (1 + np.exp(-2.0))
    best = interleaved(
        {
            "trw": sweeps(trw),
            "fused": lambda: bare_fused(h, s, 1 - s, out, SWEEPS),
            "separate": lambda: bare_separate(h, s, 1 - s, out, SWEEPS),
            "bethe": sweeps(bethe),
            "clamped": sweeps(clamped),
            "mean_field": sweeps(field),
            "sigmoid": lambda: bare_sigmoid(x, out_x, SWEEPS),
        },
        repeats,
    )
    return {
        name: 1e9 * seconds / SWEEPS / (x.size if name in ("mean_field", "sigmoid") else h.size)
        for name, seconds in best.items()
    }


def general(num_labels: int, num_lanes: int, repeats: int) -> dict[str, float]:
    """Nanoseconds per message and lane for L labels."""
    batch = batch_of(num_lanes, labels=num_labels, potentials="table")
    layout = TableLayout.from_batch(batch, budget=UNLIMITED)
    trw = GeneralLanes(layout, Workers(1), budget=UNLIMITED)
    trw.set_counting(uniform_weights(batch.model.topology, budget=UNLIMITED)[:, None], budget=UNLIMITED)
    field = TableField(layout, np.full(layout.theta.shape, 1 / num_labels), Workers(1))
    num_messages = 2 * batch.model.num_edges
    rng = np.random.default_rng(3)
    factor = rng.uniform(size=(num_messages, num_labels, num_labels))
    cavity, out = aligned(num_labels, num_lanes), aligned(num_labels, num_lanes)
    cavity[:] = rng.uniform(size=cavity.shape)
    values = rng.uniform(-6, 0, num_messages * num_labels * num_lanes)
    logs = np.empty_like(values)
    best = interleaved(
        {
            "trw": sweeps(trw),
            "mean_field": sweeps(field),
            "products": lambda: bare_products(factor, cavity, out, SWEEPS),
            "exp_log": lambda: bare_exp_log(values, logs, SWEEPS),
        },
        repeats,
    )
    return {name: 1e9 * seconds / SWEEPS / (num_messages * num_lanes) for name, seconds in best.items()}


def main(quick: bool) -> list[Claim]:
    repeats = 10 if quick else 60
    rows, claims = [], []
    for num_lanes in (1, 8, 32) if quick else (1, 2, 4, 8, 16, 32, 64):
        t = binary(num_lanes, repeats)
        over = {name: t[name] / t["fused"] for name in ("trw", "bethe", "clamped")}
        messages = [
            t["fused"],
            t["separate"],
            t["trw"],
            over["trw"],
            t["trw"] / t["separate"],
            t["bethe"],
            over["bethe"],
            t["clamped"],
            over["clamped"],
        ]
        rows.append([num_lanes, *messages, t["sigmoid"], t["mean_field"], t["mean_field"] / t["sigmoid"]])
        if num_lanes in (1, 32):
            many, most, most_of_field = ("32 lanes", 2, 8) if num_lanes == 32 else ("one lane", 8, 30)
            claims += [
                Claim(f"binary {name} message / bare fused loop, {many}", over[name], "<=", most)
                for name in ("trw", "bethe")
            ]
            claims.append(Claim(f"the same for trw with clamped variables, {many}", over["clamped"], "<=", most))
            field = t["mean_field"] / t["sigmoid"]
            claims.append(
                Claim(f"mean-field variable of 4 neighbours / bare sigmoid, {many}", field, "<=", most_of_field)
            )
    print_table(
        f"Binary kernels, {SIDE}x{SIDE} toroidal grid, ns per message and lane (mean field: per variable and lane)",
        [
            "lanes",
            "bare fused",
            "separate",
            "trw",
            "/fused",
            "/separate",
            "bethe",
            "/fused",
            "clamped",
            "/fused",
            "bare sigmoid",
            "mean field",
            "/sigmoid",
        ],
        rows,
    )
    rows = []
    general_over: dict[str, float] = {}
    for num_lanes in (1, 32):
        for num_labels in (2, 4, 8, 16):
            t = general(num_labels, num_lanes, repeats)
            full = t["products"] + t["exp_log"]
            over = [t["trw"] / t["products"], t["trw"] / full]
            rows.append(
                [
                    num_lanes,
                    num_labels,
                    t["products"],
                    t["exp_log"],
                    t["trw"],
                    *over,
                    t["mean_field"],
                    t["mean_field"] / t["products"],
                ]
            )
            general_over[f"{num_labels} labels, {num_lanes} lanes"] = over[1]
    print_table(
        "General kernels, ns per message and lane",
        [
            "lanes",
            "labels",
            "bare products",
            "exp, log",
            "trw",
            "/products",
            "/(products, exp, log)",
            "mean field",
            "/products",
        ],
        rows,
    )
    return [*claims, *worst("general trw message / its products, exp and log", general_over, "<=", 4.0)]


if __name__ == "__main__":
    alone(main)
