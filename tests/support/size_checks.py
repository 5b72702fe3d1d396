"""What is true of models, lanes, numbers and files of every size: what `test_sizes` asks around every limit."""

import gzip
import importlib
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from naive import enumerate_model
from planar_models import planar_sum

import clampz as cz
from clampz.approximations.edge_weights import uniform_weights
from clampz.map_inference import components
from clampz.model_counting import ganak
from clampz.model_counting.encoding import encode
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import UNLIMITED, Budget

EXACT = 1e-9


def value_of(where: str) -> object:
    room, name = where.split(":")
    return getattr(importlib.import_module(f"clampz.{room}"), name)


def set_everywhere(monkeypatch: pytest.MonkeyPatch, where: str, value: float) -> None:
    """Set a constant where it is written and wherever it has been imported."""
    name, before = where.split(":")[1], value_of(where)
    for module in [module for key, module in sys.modules.items() if key.startswith("clampz.")]:
        if vars(module).get(name) == before:
            monkeypatch.setattr(module, name, value)


# Models whose answers are known.


def squared_cycle(n: int, **drawing) -> cz.Model:
    """Every variable with the next two: no degree is below 4, and the width is 4."""
    edges = [(i, (i + k) % n) for i in range(n) for k in (1, 2)]
    return cz.generators.from_graph(n, edges, **{"weights": (-2, 2), "rng": 0, **drawing})


def curie_weiss(n: int, coupling: float) -> tuple[cz.Model, float]:
    """All pairs alike, and log Z by counting the variables that are 1."""
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    model = cz.Model.from_binary(np.zeros(n), np.full(len(pairs), coupling), pairs)
    terms = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        + model.score([1] * k + [0] * (n - k))
        for k in range(n + 1)
    ]  # fmt: skip
    return model, float(np.logaddexp.reduce(terms))


def hubs(num_spokes: int) -> cz.Model:
    """Two variables that all others are connected to."""
    edges = [(hub, 2 + i) for i in range(num_spokes) for hub in (0, 1)]
    return cz.generators.from_graph(2 + num_spokes, edges, weights=(-1, 1), rng=0)


def hard_model() -> cz.Model:
    """A colouring, with preferences."""
    differ = np.where(np.eye(3) > 0, -np.inf, 0.0)
    rng = np.random.default_rng(1)
    return cz.Model(rng.normal(size=(8, 3)), {(i, (i + k) % 8): differ for i in range(8) for k in (1, 3)})


# What is the same whatever a limit is: numbers.  Bounds are held against log Z on the way.


def held(model: cz.Model, *found, log_z: float | None = None) -> None:
    log_z = cz.exact(model).log_z if log_z is None else log_z
    for result in found:
        assert result.lower <= log_z + EXACT * abs(log_z), result
        assert result.upper >= log_z - EXACT * abs(log_z), result


def exact_sums() -> list[float]:
    models = [squared_cycle(30), hubs(40), hard_model(), cz.generators.grid(5, 5, labels=3, rng=0)]
    batches = [cz.Batch(model, np.random.default_rng(0).normal(size=(len(model.unary.flat), 3))) for model in models]
    out = []
    for model, batch in zip(models, batches, strict=True):
        alone, lanes = cz.exact(model), cz.exact(batch, threads=2)
        out += [
            alone.log_z,
            *lanes.log_z,
            *alone.marginals[1],
            *lanes[2].pairwise_marginals[tuple(model.edges[3])].flat,
        ]
    return out


def contracted_sums() -> list[float]:
    """Contracted wherever they are long enough to be."""
    with pytest.MonkeyPatch.context() as patch:
        set_everywhere(patch, "exact_inference.contraction_trees:SECONDS_PER_VISIT", math.inf)
        return exact_sums()


def brackets() -> list[float]:
    """Valid ones; and all the way to log Z where there is time."""
    out = []
    apart = cz.generators.from_graph(9, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (6, 7)], labels=5, rng=0)
    for model in (cz.generators.grid(4, 4, rng=0), squared_cycle(14), apart, hard_model()):
        log_z = cz.exact(model).log_z
        for options in ({"gap": 1e-6}, {"exact": False, "time": 0.1}, {"exact": False, "leaves": 6}):
            bracket = cz.bound(model, **{"time": 20.0, "threads": 1, **options})
            held(model, bracket, log_z=log_z)
            out += [bracket.estimate] if "gap" in options else []
    return out


def counts() -> list[float]:
    """Of a ring whose neighbours differ, and of a chain of implications with strong potentials."""
    ring = cz.Model(np.zeros((5, 5)), {(i, (i + 1) % 5): np.where(np.eye(5) > 0, -np.inf, 0.0) for i in range(5)})
    implies = [[0.0, 0.0], [-np.inf, 0.0]]
    chain = cz.Model(np.tile([0.0, -9.0], (12, 1)), {(i, i + 1): implies for i in range(11)})
    out = []
    for model in (ring, chain):
        clauses = encode(model)
        out.append(ganak.log_count(clauses, Budget(), 10**9) + clauses.scale)
        np.testing.assert_allclose(out[-1], cz.exact(model).log_z, EXACT)
    return out


def intervals() -> list[float]:
    """Of marginals, around the exact ones."""
    for model in (cz.generators.grid(3, 3, rng=0), hard_model()):
        found = cz.bound_marginals(model, exact=False, time=0.3, threads=1)
        for i, marginal in enumerate(cz.exact(model).marginals):
            assert (found.lower[i] <= marginal + EXACT).all() and (found.upper[i] >= marginal - EXACT).all()
    return []


def bounds_of_methods() -> list[float]:
    """Bounds that hold; no two runs need be the same."""
    for model in (cz.generators.grid(5, 5, rng=0), squared_cycle(12), hubs(20), hard_model()):
        held(model, cz.mean_field(model, max_iter=50), cz.trw(model, max_iter=50), cz.bound(model, time=0.2, threads=1))
    return []


def lanes_and_threads() -> list[float]:
    """Lanes in blocks and ranges on threads, against each of them alone."""
    out = []
    for model in (cz.generators.grid(4, 4, rng=0), cz.generators.grid(3, 3, labels=3, rng=0)):
        batch = cz.Batch(model, np.random.default_rng(0).normal(size=(len(model.unary.flat), 21)))
        for method in (cz.mean_field, cz.bethe, cz.trw):
            one, two = (method(batch, max_iter=30, threads=threads) for threads in (1, 2))
            assert (one.log_z == two.log_z).all()
            large = [method(model, max_iter=30, threads=threads).log_z for threads in (1, 2)]
            assert large[0] == large[1]
            out += [*one.log_z, large[0]]
    return out


def lanes_of_regions() -> list[float]:
    """Lanes of mini-buckets side by side or one after another, on one thread and on two."""
    out = []
    for model in (cz.generators.grid(4, 4, rng=0), cz.generators.grid(3, 3, labels=3, rng=0), hard_model()):
        batch = cz.Batch(model, np.random.default_rng(0).normal(size=(len(model.unary.flat), 21)))
        one, two = (cz.mini_buckets(batch, max_table=16, max_iter=10, threads=threads) for threads in (1, 2))
        assert (one.lower == two.lower).all() and (one.upper == two.upper).all()
        out += [*one.lower, *one.upper]
    return out


def weights_of_components() -> list[float]:
    """Edge weights of forty triangles, some at a time."""
    corners = 3 * np.arange(40)[:, None, None] + np.array([(0, 1), (1, 2), (0, 2)])
    model = cz.generators.from_graph(120, corners.reshape(-1, 2), rng=0)
    held(model, cz.trw(model, max_iter=20))
    return [*uniform_weights(model.topology, budget=UNLIMITED)]


def clamped() -> list[float]:
    model = cz.generators.grid(3, 3, rng=0)
    with ThreadPoolExecutor(2) as executor:
        found = [cz.clamp(model, name, k=5, select="maxW", executor=executor) for name in ("mf", "trw")]
    held(model, *found)
    return [step.log_z for result in found for step in result.steps]


def walks() -> list[float]:
    """Mpower of dense and sparse graphs: counted walks leave out a share of each score."""
    return [*cz.scores(squared_cycle(60), "Mpower")]


def starts_of_mean_field() -> list[float]:
    found = cz.mean_field(hard_model())
    held(hard_model(), found)
    return []


def learned() -> list[float]:
    """Rows with missing values and with inputs, some at a time, and with nothing kept to go on from."""
    model, rng = cz.generators.grid(3, 3, weights=(-1, 1), rng=0), np.random.default_rng(0)
    rows = np.where(rng.random((9, 9)) < 0.3, -1, rng.integers(2, size=(9, 9)))
    out = []
    for method in ("exact", "trw"):
        for inputs in (None, rng.normal(size=(9, 9, 2))):
            found = cz.fit(model, rows, method=method, inputs=inputs, l2=0.1, max_iter=5)
            assert found.lower <= found.log_likelihood <= found.upper
            out.append(found.log_likelihood)
    return out


def written_and_read() -> list[float]:
    out = []
    factors = [((0, 1, 2), np.random.default_rng(0).normal(size=(2, 2, 2)))]
    for model in (squared_cycle(9), cz.Model(np.zeros((3, 2)), factors=factors, constant=900.0)):
        for suffix in ("uai", "fg", "uai.gz"):
            with TemporaryDirectory() as folder:
                cz.write(model, path := Path(folder) / f"model.{suffix}")
                out.append(cz.exact(cz.read(path)).log_z)
    return out


# Limits that kernels are compiled with or that need no large model, and some others, at their true size: what is said
# of the size given is true below, at and beyond the limit.


def of_width(width: float) -> None:
    """A complete graph one variable larger: `exact` refuses it by its width, and brackets hold."""
    model, log_z = curie_weiss(int(width) + 1, 0.01)
    with pytest.raises(cz.errors.TooWideError, match=f"width.*{int(width)}|{int(width)}.*width"):
        cz.exact(model)
    held(model, cz.bound(model, time=0.2, threads=1), cz.mean_field(model), cz.trw(model), log_z=log_z)


def in_the_matrix_of_bits(size: float) -> None:
    """No variable is eliminated early, and so the order is looked for among all of them; against lists alone."""
    model = squared_cycle(int(size))
    found = cz.exact(model)
    with pytest.MonkeyPatch.context() as patch:
        set_everywhere(patch, "_kernels.elimination.greedy_order:DENSE_LIMIT", 0)
        other = cz.exact(model)
    assert found.log_z == pytest.approx(other.log_z, rel=1e-12)
    np.testing.assert_allclose(found.marginals[size // 2], other.marginals[size // 2], atol=EXACT)
    held(model, cz.trw(model, max_iter=20), cz.mean_field(model, max_iter=20), log_z=found.log_z)


def of_states(size: float) -> None:
    """A table of this many entries, as one variable's and as a pair's."""
    rng = np.random.default_rng(0)
    for shape in ((int(size), 2), (2, int(size)), (int(size), 1)):
        unary = [rng.normal(size=k) for k in shape]
        table = rng.normal(size=shape)
        found = cz.exact(cz.Model(unary, {(0, 1): table}))
        joint = unary[0][:, None] + unary[1] + table
        assert found.log_z == pytest.approx(np.logaddexp.reduce(joint, axis=None), rel=1e-12)
        np.testing.assert_allclose(found.marginals[0], np.exp(joint - found.log_z).sum(axis=1), atol=EXACT)
    cut = cz.generators.cycle(3, labels=32 + np.sign(int(size) - 1024), potentials="table", rng=0)
    found = cz.exact(cut)
    a, b, c = (np.exp(cut.unary[i]) for i in range(3))
    ab, bc, ac = (np.exp(cut.pairwise[pair]) for pair in ((0, 1), (1, 2), (0, 2)))
    joint = a * (((ab * b) @ (bc * c)) * ac).sum(axis=1)
    assert found.log_z == pytest.approx(np.log(joint.sum()), rel=1e-12)
    np.testing.assert_allclose(found.marginals[0], joint / joint.sum(), atol=EXACT)


def of_runs(size: float) -> None:
    """An axis of this many states, through all that is contracted."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(int(size), 3)), rng.normal(size=(3, 2, int(size)))
    model = cz.Model.from_factors([int(size), 3, 2], [((0, 1), first), ((1, 2, 0), second)])
    joint = first[:, :, None] + second.transpose(2, 0, 1)
    with pytest.MonkeyPatch.context() as patch:
        set_everywhere(patch, "exact_inference.orders:CONTRACTED_ENTRIES", 0.0)
        set_everywhere(patch, "exact_inference.contraction_trees:SECONDS_PER_VISIT", math.inf)
        found = cz.exact(model)
    assert found.log_z == pytest.approx(np.logaddexp.reduce(joint, axis=None), rel=1e-12)
    for i, others in enumerate(((1, 2), (0, 2), (0, 1))):
        np.testing.assert_allclose(found.marginals[i], np.exp(joint - found.log_z).sum(axis=others), atol=EXACT)


def of_pieces(size: float) -> None:
    """A message of half as many entries, as many, and twice as many."""
    max_table = int(value_of("_kernels.elimination.steps:PIECE"))
    model, log_z = curie_weiss(max_table.bit_length() + np.sign(int(size) - max_table), 0.1)
    found = cz.exact(model)
    assert found.log_z == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(found.marginals.flat, 0.5, atol=EXACT)


def of_degree(degree: float) -> None:
    """Messages into one variable, in chunks: one lane alone against many."""
    model = hubs(int(degree))
    batch = cz.Batch(model, np.repeat(model.unary.flat[:, None], 9, axis=1))
    for method in (cz.mean_field, cz.bethe, cz.trw):
        alone, lanes = method(model, max_iter=50), method(batch, max_iter=50)
        held(model, alone, lanes[4])
        np.testing.assert_allclose(lanes.log_z, alone.log_z, rtol=1e-7)


def of_lanes(num_lanes: float) -> None:
    for model in (cz.generators.grid(3, 3, rng=0), cz.generators.cycle(5, labels=3, rng=0)):
        batch = cz.Batch(model, np.random.default_rng(0).normal(size=(len(model.unary.flat), int(num_lanes))))
        for method in (cz.mean_field, cz.bethe, cz.trw):
            found = method(batch, max_iter=30, threads=2)
            for b in (0, int(num_lanes) - 1):
                alone = method(batch.take(np.array([b])), max_iter=30)[0]
                assert found.log_z[b] == pytest.approx(alone.log_z, rel=1e-9, abs=1e-9)


def of_strength(strength: float) -> None:
    """Couplings W / 2 rho, ranges and potentials of this many nats: alone, in lanes, and by enumeration."""
    for sign in (1.0, -1.0):
        model = cz.Model.from_binary([0.3, -0.2, 0.1], 2 * sign * strength * np.ones(3), [(0, 1), (1, 2), (0, 2)])
        log_z = enumerate_model(model)[0]
        batch = cz.Batch(model, np.repeat(model.unary.flat[:, None], 9, axis=1))
        for method in (cz.exact, cz.mean_field, cz.bethe, cz.trw):
            held(model, method(model), method(batch)[4], log_z=log_z)
        path = cz.Model([[0.0, strength], [0.0, 0.0, -strength]], {(0, 1): [[0.0, 0.0, 0.0], [0.0, 1.0, strength]]})
        found = cz.exact(path)
        assert found.log_z == pytest.approx(enumerate_model(path)[0], rel=1e-13)
        np.testing.assert_allclose(found.marginals[1], enumerate_model(path)[1][1], atol=EXACT)


def on_cycles(size: float) -> None:
    """Edge weights are valid whichever way they are found; given ones are checked, or refused where that takes long."""
    n = int(size)
    model = squared_cycle(n)
    log_z = cz.exact(model, marginals=False).log_z
    held(model, cz.trw(model, max_iter=5), cz.trw(model, edge_weights="sampled", max_iter=5), log_z=log_z)
    uniform = uniform_weights(model.topology, budget=UNLIMITED)
    held(model, cz.trw(model, edge_weights=uniform, max_iter=5), log_z=log_z)
    along = 0.5 * uniform + 0.5 * (np.diff(model.edges)[:, 0] == 1)  # half of it one long path
    most = value_of("approximations.edge_weights:MAX_CHECKED")
    if n > most:
        with pytest.raises(cz.errors.OptionError, match="none above the uniform ones"):
            cz.trw(model, edge_weights=along)
    elif n == most:
        held(model, cz.trw(model, edge_weights=along, max_iter=5), log_z=log_z)


def of_sides(size: float) -> None:
    """A frustrated cycle, whose two faces have this many sides."""
    n, J = int(size), 3.0
    pairs = {(min(i, (i + 1) % n), max(i, (i + 1) % n)): J * np.array([[1, -1], [-1, 1]]) for i in range(n)}
    pairs[0, 1] = -pairs[0, 1]
    found = planar_sum(cz.Model(np.zeros((n, 2)), pairs))
    wanted = n * math.log(2 * math.cosh(J)) + math.log1p(-(math.tanh(J) ** n))
    assert found is not None and found.log_z == pytest.approx(wanted, rel=EXACT)


def of_columns(size: float) -> None:
    """A strip in which two frustrated faces are so far from each other that a search for one from the other meets about
    this many columns."""
    length, J = int(size) // 8, 3.0
    pairs = {}
    for i in range(4 * length):
        for j in (i + 1,) * (i % 4 < 3) + (i + 4,) * (i // 4 < length - 1):
            sign = -1 if j == i + 1 and i % 4 == 1 and i // 4 < length // 2 else 1
            pairs[i, j] = sign * J * np.array([[1, -1], [-1, 1]])
    model = cz.Model(np.zeros((4 * length, 2)), pairs)
    found = planar_sum(model)
    assert found is not None and found.log_z == pytest.approx(cz.exact(model, marginals=False).log_z, rel=EXACT)


def of_slots(size: float) -> None:
    """A cycle of this many variables, in ranges and in blocks of sums."""
    model = cz.generators.cycle(int(size), weights=(-1, 1), rng=0)
    log_z = cz.exact(model, marginals=False).log_z
    for method, options in ((cz.mean_field, {"num_starts": 1}), (cz.trw, {})):
        one, two = (method(model, max_iter=2, threads=threads, **options) for threads in (1, 2))
        assert one.log_z == two.log_z
        held(model, one, log_z=log_z)


def of_messages(size: float) -> None:
    of_slots((int(size) + 1) // 2)


def of_edges(size: float) -> None:
    model = squared_cycle((int(size) + 1) // 2)
    held(model, cz.bound(model, time=0.3, threads=1, exact=False), cz.bound(model, time=1, threads=1))


def of_potential(size: float) -> None:
    """Taken up to the limit, refused beyond."""
    for potentials in ([0.0, size], [-size, 0.0]):
        if size > value_of("model.checks:LARGEST_POTENTIAL"):
            with pytest.raises(cz.errors.ModelError, match="1e\\+20"):
                cz.Model([potentials])
        else:
            model = cz.Model([potentials, [0.0, 1.0]], {(0, 1): [[0.0, 1.0], [1.0, 0.0]]})
            held(
                model, cz.exact(model), cz.mean_field(model), cz.trw(model), cz.bound(model, time=0.2), cz.bethe(model)
            )


def of_numbers(size: float) -> None:
    """No model is as large here: twelve messages are, where the limit is set beside them."""
    where = "model.checks:MOST_MESSAGES"
    excess = int(size) - value_of(where)
    with pytest.MonkeyPatch.context() as patch:
        set_everywhere(patch, where, 12 - excess)
        if excess > 0:
            with pytest.raises(
                cz.errors.ModelError, match="at most 11 variables and half as many edges, found 6 and 6"
            ):
                cz.generators.cycle(6, rng=0)
        else:
            assert cz.exact(cz.generators.cycle(6, rng=0)).converged


# Files: read as they are said, or refused.


def read_text(text: str, suffix: str = "uai", *, packed: bool = False) -> cz.Model:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{suffix}"
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        return cz.read(path)


def refused_beyond(
    where: str, size: float, text: str, log_z: float, suffix: str = "uai", *, packed: bool = False
) -> None:
    """A file of such a size is read up to the limit and refused beyond."""
    max_table = value_of(where)
    assert isinstance(max_table, int | float)
    if size > max_table:
        with pytest.raises(cz.errors.FormatError, match="expected"):
            read_text(text, suffix, packed=packed)
    else:
        assert cz.exact(read_text(text, suffix, packed=packed)).log_z == pytest.approx(log_z, rel=1e-12)


def of_free_states(size: float) -> None:
    """States that no table tells of, beyond one for each of the three numbers."""
    refused_beyond("io.text_formats:FREE_STATES", size, f"MARKOV 1 {int(size) + 3} 0", math.log(size + 3))


def of_free_entries(size: float) -> None:
    """Entries of a table that the file does not list, beyond one for each byte; 0 but for the first."""
    rows = 1024  # of two variables, as the states of one would be too many
    columns = int(size) // rows + 2
    text = f"1 2 0 1 {rows} {columns} 1 0 2.0".ljust(rows * columns - int(size))
    refused_beyond("io.fg:FREE_ENTRIES", size, text, math.log(2.0), "fg")


def of_unpacked_bytes(size: float) -> None:
    text = "MARKOV 1 2 1 1 0 2 1.0 3.0"
    refused_beyond("io.files:FREE_BYTES", size, text.ljust(int(size)), math.log(4.0), packed=True)


def of_token_length(size: float) -> None:
    """A number of this many digits wherever the text is cut: read as what it is, or refused."""
    digits = "0." + "0" * (int(size) - 3) + "1"
    text = f"MARKOV 1 2 1 1 0 2 1.0 {digits} "
    for piece in (1, 8, 10_000):
        with pytest.MonkeyPatch.context() as patch:
            set_everywhere(patch, "io.tokens:PIECE", piece)
            try:
                assert cz.exact(read_text(text)).log_z == 0.0
            except cz.errors.FormatError:
                assert size > value_of("io.tokens:LONGEST_TOKEN")


def of_label(size: float) -> None:
    """The number of a variable in a .fg file."""
    text = f"1 1 {int(size) - 1} 2 2 0 1.0 1 3.0"
    refused_beyond("io.tokens:LARGEST_WHOLE", size, text, math.log(4.0), "fg")


def of_axes(size: float) -> None:
    """A factor over this many variables, all but two of one state."""
    n = int(size)
    scope = " ".join(map(str, range(n)))
    states = " ".join(["2", *["1"] * (n - 2), "2"])
    assert cz.exact(read_text(f"MARKOV {n} {states} 1 {n} {scope} 4 1 2 3 4")).log_z == pytest.approx(math.log(10.0))


def of_constants(size: float) -> None:
    """A constant of this many times what a float can hold the exponential of."""
    constant = size * value_of("numerics:LARGEST_LOG")
    model = cz.Model([[0.0, 0.0]], constant=constant)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.uai"
        if size > value_of("io.text_formats:MAX_CONSTANTS"):
            with pytest.raises(cz.errors.ModelError, match="constant"):
                cz.write(model, path)
        else:
            cz.write(model, path)
            assert cz.exact(cz.read(path)).log_z == pytest.approx(constant + math.log(2.0), rel=1e-12)


# -- presolve ---------------------------------------------------------------------------------------------------------


def modes() -> list[float]:
    """Where an exact maximum is not tried."""
    K = [cz.generators.complete(12, weights=(-6, 6), rng=seed) for seed in range(2)]
    two = {(i + 12 * k, j + 12 * k): each.pairwise[i, j] for k, each in enumerate(K) for i, j in each.pairwise}
    models = [hard_model(), cz.generators.grid(6, 6, labels=3, rng=0), cz.Model(np.zeros((24, 2)), two)]
    out = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components, "EXACT_SHARE", 0.0)
        for model in models:
            found = cz.mode(model, threads=1, time=60.0)
            assert found.is_optimal and found.upper - found.lower <= EXACT
            out += [found.score, found.upper]
            out.append(cz.mode(model, num_best=3, threads=1, time=60.0, gap=0.0).best[2].score)
    return out


def simplified() -> list[float]:
    """log Z of what is left, whatever that is."""
    models = [
        squared_cycle(30),
        hubs(40),
        hard_model(),
        cz.generators.from_graph(9, [(i, i + 1) for i in range(8)], rng=0),
    ]
    return [cz.exact(simplify(model, marginals=False).model).log_z for model in models]


def summed_or_not(model: cz.Model, keep: list[int]) -> None:
    """Whether the first variable is summed out or not, the rest has the same log Z."""
    found = simplify(model, keep)
    lower, upper = found.bounds(*[float(cz.exact(found.model).log_z)] * 2)
    log_z = cz.exact(model).log_z
    assert lower - EXACT <= log_z <= upper + EXACT


def of_axes_of_a_sum(size: float) -> None:
    """A variable with this many neighbours of one state, which must stay."""
    rng, n = np.random.default_rng(0), int(size)
    model = cz.Model(
        [rng.normal(size=2), *([[0.5]] * n)],
        {(0, i): rng.normal(size=(2, 1)) for i in range(1, n + 1)},
    )
    summed_or_not(model, list(range(1, n + 1)))


def of_parts_of_a_sum(size: float) -> None:
    """A variable in this many factors of three variables, the others few and of one state."""
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i in range(1, 13) for j in range(i + 1, 13)][: int(size)]
    factors = [((0, i, j), rng.normal(size=(2, 1, 1))) for i, j in pairs]
    summed_or_not(cz.Model([rng.normal(size=2), *([[0.5]] * 12)], factors=factors), list(range(1, 13)))


def of_terms_of_a_sum(size: float) -> None:
    """A chain of three variables of this many states times two: as many terms per entry of both tables."""
    rng, k = np.random.default_rng(0), 2 * int(size)
    model = cz.Model(rng.normal(size=(3, k)), {(0, 1): rng.normal(size=(k, k)), (0, 2): rng.normal(size=(k, k))})
    summed_or_not(model, [1, 2])
