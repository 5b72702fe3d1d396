"""Checkpoints: the search that was left, or a refusal that says why, whatever the bytes."""

import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from random_models import frustrated, random_edges, random_tables

import clampz as cz
from clampz.bounding.bracket import Point
from clampz.bounding.checkpoints import file as checkpoint_file
from clampz.bounding.checkpoints.checkpoint import LINE, TITLE, resumed, save
from clampz.bounding.checkpoints.schema import KINDS, SavedSearch, digest, saved_search
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape, WarmStart
from clampz.bounding.options import BoundOptions
from clampz.bounding.tree.branch_and_bound import BranchAndBound
from clampz.bounding.tree.nodes import Node

OPEN = {"gap": 0.0, "exact": False, "time": 60.0, "threads": 1, "max_table": 4}


def larger_factors():
    rng = np.random.default_rng(5)
    scopes = [tuple(rng.choice(9, 3, replace=False).tolist()) for _ in range(9)]
    factors = [(scope, rng.normal(size=(2, 2, 2)) * 3) for scope in scopes]
    return cz.Model.from_factors([2] * 9, factors, names=[f"v{i}" for i in range(9)])


def many_factors():
    """Branches of them have larger factors too."""
    rng = np.random.default_rng(5)
    scopes = [tuple(rng.choice(14, 3, replace=False).tolist()) for _ in range(24)]
    return cz.Model.from_factors([2] * 14, [(scope, rng.normal(size=(2, 2, 2)) * 3) for scope in scopes])


def labels_and_zeros(zeros=0.0):
    rng = np.random.default_rng(1)
    return random_tables(rng, [5, 3, 4, 2, 6, 3, 4], random_edges(rng, 7, 0.8), 3.0, zeros=zeros)


def apart():
    """Two components, and a variable by itself."""
    one = frustrated(2, 6)
    edges = np.concatenate([one.edges, one.edges + 6])
    tables = np.tile(one.pairwise.flat, 2).reshape(-1, 2, 2)
    return cz.Model.from_arrays(np.random.default_rng(0).normal(size=(13, 2)), edges, tables, constant=2.5)


MODELS = {
    "frustrated": lambda: frustrated(9),
    "grid": lambda: cz.generators.grid(5, 5, weights=(-6, 6), rng=0),
    "labels": labels_and_zeros,
    "hard zeros": lambda: labels_and_zeros(0.3),
    "larger factors": larger_factors,
    "many factors": many_factors,
    "apart": apart,
    "Z = 0": lambda: cz.Model([[0, 0]] * 3, {pair: [[-np.inf, 0], [0, -np.inf]] for pair in [(0, 1), (1, 2), (0, 2)]}),
    "nothing": lambda: cz.Model([]),
}


def left(model, path, leaves=25):
    """What bound() leaves in a file, read back as it stands there."""
    bracket = cz.bound(model, leaves=leaves, checkpoint=path, **OPEN)
    return bracket, read(path)


def read(path):
    with path.open("rb") as file:
        return SavedSearch(*checkpoint_file.read(file, file.readline(), KINDS, 10**9))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("base") / "tree"
    return left(frustrated(9), path)[1], path.read_bytes()


@pytest.fixture
def refused(base, tmp_path):
    """A file with some arrays replaced and a checksum that fits is refused."""

    def check(match="", **changes):
        path = tmp_path / "forged"
        checkpoint_file.write(path, LINE, base[0]._replace(**changes), KINDS)
        with pytest.raises(cz.errors.OptionError, match=rf"checkpoint .*forged: .*{match}.*; give another file, or"):
            cz.bound(frustrated(9), time=0.0, checkpoint=path)

    return check


@pytest.mark.parametrize("name", MODELS)
def test_the_search_is_the_one_that_was_left(name, tmp_path):
    model, path = MODELS[name](), tmp_path / "tree"
    bracket, kept = left(model, path)
    search = resumed(model, BoundOptions(**OPEN), path)
    for field, before, after in zip(SavedSearch._fields, kept, saved_search(search), strict=True):
        if field == "other":  # below a split it is as when it was last asked for, and now as it is
            chosen = ~np.isin(kept.parent, np.flatnonzero(kept.is_and))
            before, after = before[chosen], after[chosen]
        assert np.array_equal(before, after, equal_nan=before.dtype.kind == "f"), field
    assert tuple(search.trace) == bracket.trace and search.frontier.num_leaves == bracket.num_leaves
    again = cz.bound(model, time=0.0, checkpoint=path)
    assert (again.lower, again.upper) == (bracket.lower, bracket.upper)


def test_deep_trees(tmp_path):
    model, path = frustrated(), tmp_path / "deep"
    search = BranchAndBound(model, BoundOptions())
    node = search.frontier.root
    node.lower, node.upper = 0.0, 60.0
    for _ in range(10_000):
        node.children = [Node(node, node.submodel, ((0, (a,)),), 0.0, 50.0) for a in (0, 1)]
        node = node.children[0]
    search.trace.append(Point(0.0, 0.0, 60.0, 10_001))
    save(search, path)
    again = resumed(model, BoundOptions(), path)
    assert again.frontier.num_nodes == 20_001 and again.frontier.num_leaves == 10_001
    written_twice = saved_search(again)
    assert all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(read(path), written_twice, strict=True)
    )


def test_one_bit_changes_everything(base, tmp_path):
    """Nothing is resumed that was not left; 1 of 1,500 was, when files were pickles."""
    path, whole, rng = tmp_path / "flipped", base[1], np.random.default_rng(0)
    model, options = frustrated(9), BoundOptions()
    for place in [*range(8 * len(LINE)), *rng.integers(8 * len(LINE), 8 * len(whole), 1500)]:
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << int(place % 8)
        path.write_bytes(flipped)
        with pytest.raises(cz.errors.OptionError, match=r"flipped: expected .*delete this one to begin anew"):
            resumed(model, options, path)


def test_truncated_files_and_garbage(base, tmp_path):
    path, whole, rng = tmp_path / "cut", base[1], np.random.default_rng(0)
    model, options, begins = frustrated(9), BoundOptions(), [b"", LINE, TITLE, pickle.PROTO + b"\x04"]
    garbage = [begins[k % len(begins)] + rng.bytes(rng.integers(1, 3000)) for k in range(200)]
    for data in [*(whole[:size] for size in range(0, len(whole), 23)), *garbage]:
        path.write_bytes(data)
        with pytest.raises(cz.errors.OptionError, match=r"cut: expected .*delete this one to begin anew"):
            resumed(model, options, path)


class Attack:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_in_a_file_is_run(tmp_path, protocol):
    path = tmp_path / "tree"
    path.write_bytes(pickle.dumps(Attack(tmp_path / "hacked"), protocol=protocol))
    what = "a pickle, as earlier versions left them" if protocol >= 2 else "something else"
    with pytest.raises(
        cz.errors.OptionError, match=rf"checkpoint .*tree: expected a file that bound\(\) left, found {what}"
    ):
        cz.bound(frustrated(), checkpoint=path)
    assert list(tmp_path.iterdir()) == [path]


def test_other_versions_are_refused_by_name(base, tmp_path):
    path = tmp_path / "tree"
    path.write_bytes(base[1].replace(LINE, TITLE + b"99.0\x1b[2J\n"))
    with pytest.raises(cz.errors.OptionError, match=r"expected one of version .*, found '99.0\\x1b\[2J'; give another"):
        cz.bound(frustrated(9), checkpoint=path)


def test_a_file_of_version_0_2_0_is_refused_in_words():
    """Left by `bound(generators.grid(3, 3, rng=0), exact=False, leaves=2, limit=4)` of that version."""
    path = Path(__file__).parents[2] / "data" / "checkpoints" / "version_0.2.0.bounds"
    assert path.read_bytes().startswith(b"clampz checkpoint 4, version 0.2.0\n")
    expected = r"expected one of version .*, found '4, version 0\.2\.0'; give another file, or delete this one"
    with pytest.raises(cz.errors.OptionError, match=expected):
        cz.bound(cz.generators.grid(3, 3, rng=0), exact=False, checkpoint=path)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(cz.errors.OptionError, match=r"found no file"):
        cz.bound(frustrated(), checkpoint=tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(cz.errors.OptionError, match=r"found no file"):  # and nobody waits for someone to write to it
        cz.bound(frustrated(), checkpoint=pipe)


def test_more_than_memory_allows_is_refused(base, tmp_path):
    many = 10**5
    grown = {
        "parent": np.arange(-1, many - 1),
        **{name: np.zeros(many) for name in ("submodel", "lower", "upper", "other", "is_and", "closed", "num_clamps")},
        "state": np.full(many, -1),
        **{name: np.empty(0) for name in ("clamp_variable", "clamp_size", "clamp_states")},
    }
    path = tmp_path / "grown"
    checkpoint_file.write(path, LINE, base[0]._replace(**grown), KINDS)
    with pytest.raises(
        cz.errors.OptionError, match=r"expected a tree of at most 51,000,000 bytes, as memory= allows, found"
    ):
        cz.bound(frustrated(9), time=0.0, memory="1MB", checkpoint=path)


# -- files with a checksum that fits, made by somebody else ------------------------------------------------------------


def test_arrays_that_are_too_long_or_too_short(base, refused):
    for field, array in zip(SavedSearch._fields, base[0], strict=True):
        refused(**{field: np.append(array, array[:1] if len(array) else [0])})
        if len(array):
            refused(**{field: array[:-1]})
        if len(array) > 1:
            refused(**{field: np.empty(0)})


HARMLESS = {"below_seed", "main", "seed", "too_wide", "trace_leaves"}  # any number that is not negative


def test_numbers_out_of_range(base, refused):
    for field, array in zip(SavedSearch._fields, base[0], strict=True):
        worst = {"f": [np.nan], "u": [2, 255], "i": [-(2**63), -7, 2**63 - 1, 2**31]}[array.dtype.kind]
        for value in worst:
            if field == "model" or (field in HARMLESS and value > 0):
                continue
            for place in {0, len(array) // 2, len(array) - 1} if len(array) else ():
                changed = array.copy()
                changed[place] = value
                refused(**{field: changed})


@pytest.mark.parametrize(
    ("field", "place", "value", "match"),
    [
        ("lower", 0, 1e9, "lower bounds that are not above"),
        ("lower", 3, np.inf, "lower bounds that are not above"),
        ("trace_lower", -1, 1e9, "lower bounds that are not above"),
        ("trace_upper", -1, 1e9, "brackets within each other"),
        ("trace_seconds", 0, 1e9, "seconds in order"),
        ("parent", 0, 0, "a tree with a root"),
        ("parent", 3, 3, "parents before their children"),
        ("parent", 3, 7, "parents before their children"),
        ("parent", -1, 0, "children side by side"),
        ("is_and", -1, 1, "components below what is split"),
        ("submodel", 0, 1, "the whole model at the root"),
        ("submodel", 1, 1, "branches of the submodel of their parent"),
        ("state_submodel", 0, 5, ""),
        ("other", 0, np.inf, "finite bounds"),
        ("clamp_variable", 0, 7, "clamps of variables that are there"),
        ("clamp_states", 0, 2, "clamps to states that are there"),
        ("first_max_table", 0, 2**62, "sizes of tables"),
        ("max_table", 0, 1, "sizes of tables"),
        ("main", 0, -1, "main cliques that are there"),
        ("values", 0, 1.1, "marginals between 0 and 1"),
        ("values", 0, -0.1, "marginals between 0 and 1"),
        ("values", -1, np.inf, "finite shifts"),
        ("num_states", 0, 0, ""),
        ("unary", 0, np.inf, "finite log potentials"),
        ("unary", 0, 1e300, "at most 1e"),
        ("pairwise", 0, np.inf, "finite log potentials"),
        ("constant", 0, np.inf, "constants in the range"),
        ("num_edges", 0, 2**62, "as many edges as there should be"),
        ("num_main", 0, 2**62, "mini-buckets of all variables"),
    ],
)
def test_nonsense_is_refused_for_what_it_is(base, refused, field, place, value, match):
    changed = getattr(base[0], field).copy()
    changed[place] = value
    refused(match, **{field: changed})


def test_edges_out_of_order(base, refused):
    edges = base[0].edges.reshape(-1, 2)
    which = int(np.flatnonzero(base[0].num_edges > 1)[0])
    k = int(base[0].num_edges[:which].sum())  # and k + 1 is an edge of the same submodel
    for two in (edges[[k + 1, k]], edges[[k, k]], edges[[k, k + 1]][:, ::-1]):
        refused("edges in order", edges=np.concatenate([edges[:k], two, edges[k + 2 :]]).ravel())
    edges = edges.copy()
    edges[k, 1] = edges[k, 0]
    refused("cannot have an edge to itself", edges=edges.ravel())


def test_states_of_clamps_out_of_order(tmp_path):
    model, path = labels_and_zeros(), tmp_path / "forged"
    kept = left(model, path)[1]
    wide = int(np.flatnonzero(kept.clamp_size > 1)[0])
    begin = int(kept.clamp_size[:wide].sum())
    kept.clamp_states[begin : begin + 2] = kept.clamp_states[begin : begin + 2][::-1]
    checkpoint_file.write(path, LINE, kept, KINDS)
    with pytest.raises(cz.errors.OptionError, match="the states of a clamp in order"):
        cz.bound(model, checkpoint=path)


def test_bounds_that_contradict_the_trace(base, refused):
    lower, upper = base[0].lower.copy(), base[0].upper.copy()
    lower[0] = upper[0] = base[0].trace_upper[-1] + 1
    refused("bounds that contradict nothing", lower=lower, upper=upper)


def test_false_bounds_that_show_later_are_the_files(base, tmp_path):
    """Every leaf is said to be far below what it is: the tree then contradicts its own root."""
    kept, path = base[0], tmp_path / "forged"
    inner = np.isin(np.arange(len(kept.parent)), kept.parent)
    lower, upper = np.where(inner, kept.lower, -2e3), np.where(inner, kept.upper, -1e3)
    closed = np.where(inner, kept.closed, 0)
    checkpoint_file.write(path, LINE, kept._replace(lower=lower, upper=upper, closed=closed), KINDS)
    with pytest.raises(
        cz.errors.OptionError, match=r"checkpoint .*forged: expected bounds that hold, found false ones"
    ):
        cz.bound(frustrated(9), checkpoint=path, leaves=60, **OPEN)


def test_main_cliques_that_are_none_are_chosen_again():
    model = frustrated(9)
    mini_buckets = MiniBucketBounds(model, Shape(8), Shape(8), 1e9)
    found = mini_buckets.bounds(model.unary.flat, WarmStart.even(model), 5)
    forged = MiniBucketBounds(model, Shape(8), Shape(8), 1e9, main=np.full(model.num_variables, 2**40))
    again = forged.bounds(model.unary.flat, found.state, 5)
    assert again.lower <= cz.exact(model).upper and (forged.main == mini_buckets.main).all()


@pytest.mark.parametrize(
    ("name", "field", "value", "match"),
    [
        ("many factors", "scopes", 99, "factors of variables that are there"),
        ("many factors", "num_scope", 2, "larger factors of three variables"),
        ("many factors", "num_scope", 4, None),
        ("many factors", "tables", np.inf, "finite log potentials"),
        ("many factors", "num_factors", 2**62, "as many factors as there should be"),
    ],
)
def test_nonsense_about_factors(tmp_path, name, field, value, match):
    model, path = MODELS[name](), tmp_path / "forged"
    kept = left(model, path)[1]
    changed = getattr(kept, field).copy()
    changed[0] = value
    checkpoint_file.write(path, LINE, kept._replace(**{field: changed}), KINDS)
    with pytest.raises(cz.errors.OptionError, match=match):
        cz.bound(model, checkpoint=path)


def test_whatever_the_content_it_is_refused_or_gone_on_from(base, tmp_path):
    """Shuffled and replaced entries under a checksum that fits: a search to go on with has bounds that do not cross."""
    path, rng, model = tmp_path / "forged", np.random.default_rng(0), frustrated(9)
    nasty = {"f": [np.nan, np.inf, -np.inf, 1e308, 0.0, -1.0], "i": [-(2**63), -1, 0, 1, 2, 2**62], "u": [0, 1, 2]}
    outcomes = set()
    for _ in range(60):
        field = rng.choice([name for name in SavedSearch._fields[1:] if len(getattr(base[0], name))])
        changed = getattr(base[0], field).copy()
        if rng.random() < 0.3:
            changed = rng.permutation(changed)
        else:
            changed[rng.integers(len(changed))] = rng.choice(nasty[changed.dtype.kind])
        checkpoint_file.write(path, LINE, base[0]._replace(**{field: changed}), KINDS)
        try:
            bracket = cz.bound(model, leaves=28, checkpoint=path, **OPEN)
            assert bracket.lower <= bracket.upper
            outcomes.add("gone on")
        except cz.errors.OptionError:
            outcomes.add("refused")
    assert outcomes == {"gone on", "refused"}


# -- the model ---------------------------------------------------------------------------------------------------------


def test_equal_models_have_one_digest_and_others_have_not():
    names, states = ["a", "b"], [["no", "yes"], ["x", "y", "z"]]
    given = {"unary": [[0.0, 1.0], [0.0, 0.0, 2.0]], "pairwise": {(0, 1): [[0, 0, 1], [1, 0, 0]]}}
    model = cz.Model(**given)
    others = [
        cz.Model(**given, constant=1e-300),
        cz.Model(**given, names=names),
        cz.Model(**given, names=["a", "c"]),
        cz.Model(**given, names=names, state_names=states),
        cz.Model(given["unary"]),
        cz.Model([[0.0, 1.0, 0.0], [0.0, 2.0]]),
        cz.Model([[0.0, 1.0], [0.0, 0.0, np.nextafter(2.0, 3.0)]], given["pairwise"]),
        larger_factors(),
    ]
    assert digest(model) == digest(cz.Model([[-0.0, 1.0], [0.0, -0.0, 2.0]], given["pairwise"], constant=-0.0))
    assert len({digest(model), *map(digest, others)}) == len(others) + 1


def test_a_file_is_left_while_readers_look(tmp_path):
    """It is replaced whole: a reader meanwhile has the one before or the one after."""
    model, path = frustrated(9), tmp_path / "tree"
    search = BranchAndBound(model, BoundOptions())
    search.trace.append(Point(0.0, -np.inf, np.inf, 1))
    save(search, path)
    done = threading.Event()

    def again():
        for _ in range(50):
            save(search, path)
        done.set()

    writer = threading.Thread(target=again)
    writer.start()
    while not done.is_set():
        assert len(resumed(model, BoundOptions(), path).trace) == 1
    writer.join()


@pytest.mark.parametrize("finished", [True, False])
def test_regions_are_kept_once_they_have_come_to_their_end(tmp_path, finished):
    """Successive halving that was left half way begins anew, and has the time that there is then."""
    model, path = frustrated(9), tmp_path / "tree"
    search = BranchAndBound(model, BoundOptions())
    search.trace.append(Point(0.0, -np.inf, np.inf, 1))
    halving = search.frontier.root.submodel.halving
    halving.mini_buckets, halving.max_table, halving.finished = (
        MiniBucketBounds(model, Shape(16, 3), Shape(8, 1), 1e9),
        16,
        finished,
    )
    save(search, path)
    again = resumed(model, BoundOptions(), path).frontier.root.submodel.halving
    assert again.finished == finished and again.max_table == (16 if finished else 0)
    assert (
        again.mini_buckets is not None and (*again.mini_buckets.above, *again.mini_buckets.below) == (16, 3, 8, 1)
    ) == finished
    assert (again.next(model, BoundOptions(), 10.0) is None) == finished
