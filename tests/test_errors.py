"""Wrong input: every public call says what it expected in a ClampzError of one line, whatever it is given."""

import inspect
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import clampz as cz
from clampz.errors import shown

TWO = np.zeros((2, 2))
MODEL = cz.Model(
    [[0.0, 0.3], [0.1, 0.0], [0.0, -0.4, 0.2]],
    {(0, 1): [[0.5, 0.0], [0.0, 0.7]], (1, 2): [[0.1, 0.2, 0.3], [0.9, 0.0, -0.3]]},
    names=["a", "b", "c"],
)


# What is right nowhere, or hardly anywhere: as a model, a flag, a name, a number, a list, a path, evidence or data.
WRONG = [None, "g.uai", b"x", -1, 2.5, np.nan, [], [[0, 1], [1]], {"x": 1}, {1, 2}, np.zeros((2, 5)), np.array(1)]
WRONG += [object(), 10**30, 1j, [None], Path("g.uai"), cz.Batch.of(MODEL), np.array(["a", "b"]), lambda: 0]
ARGUMENTS = {
    "Batch": {"unary": np.zeros((7, 2))},
    "Model": {"unary": [[0, 1], [0, 1]]},
    "branches": {"variables": [0]},
    "clamp": {"k": 1},
    "fit": {"data": [[0, 0, 0], [1, 0, 2]], "max_iter": 1},
    "log_ratio": {"model_a": MODEL, "model_b": MODEL},
    "probability": {"event": {"a": 1}},
    "read": {"path": "nowhere.uai"},
    "sample": {"num_samples": 2},
    "sample_blocks": {"num_samples": 2},
    "scores": {"selector": "maxW"},
    "sweep": {"beta": [1.0]},
    "write": {"path": "nowhere/model.uai"},
}
# Run by what they are given, drawn elsewhere, or of another library.
NOT_ASKED = {"methods", "selectors", "plot_model", "plot_clamped", "to_dimod_sampleset"}
NOT_CHANGED = {"progress", "executor", "budget", "checkpoint", "changes"}
# What some do not look at, whatever it is.
NOT_LOOKED_AT = {("exact", "start"), ("scores", "entropy")}
OPTIONS = dict.fromkeys(("bound", "bounds", "bound_marginals"), cz.options.BoundOptions) | {
    "clamp": cz.options.TRWOptions
}


def calls():
    """The public calls, by name."""
    made = {name: getattr(cz, name) for name in ("Batch", "Model", "Memo")}
    found = {name: getattr(cz, name) for name in cz.__all__}
    functions = {name: call for name, call in found.items() if callable(call) and not inspect.isclass(call)}
    return made | {name: call for name, call in functions.items() if name not in NOT_ASKED and "from_" not in name}


def parameters():
    for name, call in calls().items():
        known = [each for each in inspect.signature(call).parameters if each not in NOT_CHANGED]
        if name.startswith("to_"):
            known = ["model"]
        known += [field.name for field in fields(OPTIONS[name])] if name in OPTIONS else []
        yield from ((name, parameter) for parameter in dict.fromkeys(known))


def ask(name, parameter, value):
    """Call it with one argument changed; the error of one line that comes of it, or None."""
    call = calls()[name]
    arguments = dict(ARGUMENTS.get(name, {}))
    if "model" in inspect.signature(call).parameters:
        arguments["model"] = MODEL
    arguments[parameter] = value
    try:
        found = call(**arguments)
        if hasattr(found, "__next__"):
            next(found)
    except cz.errors.ClampzError as error:
        text = str(error)
        assert text and "\n" not in text and len(text) < 600, text
        return text
    return None


@pytest.mark.parametrize(("name", "parameter"), [each for each in parameters() if each != ("Memo", "options")])
def test_whatever_comes_it_is_taken_or_refused_in_one_line(name, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    limits = {
        "time",
        "max_iter",
        "num_steps",
        "num_trees",
        "num_structures",
        "block_size",
        "num_samples",
        "tol",
        "gap",
        "l2",
    }
    refused = []
    for value in WRONG:
        if parameter in limits and isinstance(value, int) and value > 10**20:
            continue  # taken: it ends when it ends
        if parameter == "num_samples" and value is None:
            continue  # without end
        refused.append(ask(name, parameter, value))
    assert any(refused) != ((name, parameter) in NOT_LOOKED_AT)


class Foreign:
    """A model of another library."""


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: cz.solve("g.uai"), r"^model: expected a Model, found 'g.uai': a file is read first, by cz.read$"),
        (lambda: cz.trw(Path("g.uai")), r"^model: expected a Model, found 'g.uai': a file is read first, by cz.read$"),
        (lambda: cz.bound(cz.Batch.of(MODEL)), r"^model: .* found a Batch: batch.lane\(b\) is the model of lane b"),
        (lambda: cz.log_ratio(MODEL, None), r"^model: expected a Model, found None$"),
        (lambda: cz.mode(cz.trw(MODEL)), r"found Estimate: the model that it is about is its attribute model$"),
        (lambda: cz.exact(Foreign()), r"found networkx's Foreign: cz.from_networkx makes one of it$"),
        (
            lambda: cz.Model(Foreign()),
            r"^unary: .* per variable, found networkx's Foreign: cz.from_networkx makes one of",
        ),
        (lambda: cz.exact(MODEL, {0: 1}), r"^exact: expected the model alone without a name, found 2 arguments; the "),
        (
            lambda: cz.solve(MODEL, method="gibbs"),
            r"^unknown method 'gibbs'. The methods are auto, exact, mean_field, ",
        ),
        (lambda: cz.sweep(MODEL, [1.0], method="gibbs"), r"^unknown method 'gibbs'. The methods are auto, exact, "),
        (lambda: cz.exact(MODEL, evidence=[(0, 1)]), r"^evidence: expected \{variable: state\}, .*, found \(0, 1\)$"),
        (
            lambda: cz.Model(TWO, np.eye(2)),
            r"found an array of shape \(2, 2\): Model.from_binary takes weights, and Model",
        ),
        (lambda: cz.Model(TWO, state_names=["no", "yes"]), r"^state_names of variable 0: .* strings, found \['no'\]$"),
        (
            lambda: cz.Model(TWO, state_names={"a": ["no", "yes"]}),
            r"^state_names: expected a list of .*, found \{'a': ",
        ),
        (
            lambda: cz.Model.from_factors({"a": 2}, []),
            r"^num_states: expected a whole number per .*, found \{'a': 2\}$",
        ),
        (lambda: cz.plot_model(MODEL, ax=3), r"^ax: expected None or Axes of matplotlib, found 3$"),
        (lambda: cz.clamp(MODEL, k=1).plot(ax=[1]), r"^ax: expected None or Axes of matplotlib, found \[1\]$"),
        (
            lambda: cz.plot_clamped(cz.trw(MODEL)),
            r"^results: expected what clamp returned, or several of these, found Est",
        ),
        (
            lambda: cz.plot_clamped({"a": 3}),
            r"^results: expected what clamp returned, or several of these, found \{'a': 3",
        ),
        (lambda: cz.bound(MODEL).plot(color="red"), r"^unknown option 'color'. The options are ax$"),
        (lambda: cz.solve(MODEL).interval(95), r"^confidence: expected a number above 0 and below 1, found 95$"),
        (lambda: cz.plot_model(MODEL, state="yes"), r"^state: expected a whole number >= 0, found 'yes'$"),
        (
            lambda: cz.plot_model(MODEL, positions={0: (0, 0)}),
            r"^positions: expected shape \(3, 2\), a finite point for",
        ),
        (lambda: cz.plot_model("g.uai"), r"^model: expected a Model, found 'g.uai': a file is read first, by cz.read$"),
        (lambda: cz.write([[0, 1]], "m.uai"), r"^model: expected a Model, found list$"),
        (lambda: cz.write(MODEL, None), r"^expected the path of a file, found None$"),
        (lambda: cz.read(b"m.uai"), r"^expected the path of a file, found b'm.uai'$"),
        (
            lambda: cz.solve(MODEL, evidence=3),
            r"^evidence: expected \{variable: state\}, a pandas row or an array of 3 sta",
        ),
        (lambda: cz.solve(MODEL, select="maxw"), r"^unknown selector 'maxw'; did you mean 'maxW"),
        (lambda: cz.solve(MODEL, marginals="no"), r"^marginals: expected True or False, found 'no'$"),
        (
            lambda: cz.bound(MODEL, options=cz.options.TRWOptions()),
            r"^options: expected None or BoundOptions, found TRWOptions",
        ),
        (
            lambda: cz.bound(MODEL, stop=True),
            r"^stop: expected None or a function that says whether to stop, found True",
        ),
        (lambda: cz.mean_field(MODEL, seed="x"), r"^seed: expected a whole number >= 0, found 'x'$"),
        (lambda: cz.simplify(MODEL, keep=3), r"^keep: expected a list of variables, by index or name, found 3$"),
        (lambda: cz.simplify(MODEL, keep="a"), r"^keep: expected a list of variables, by index or name, found 'a'$"),
        (lambda: MODEL.scores([[0.5, 0, 0]]), r"^configurations: expected states by index, found \[\[0.5, 0, 0\]\]$"),
        (lambda: cz.Model([[0, 1]], None), r"^pairwise: expected \{\(i, j\): table\}, found None$"),
        (lambda: cz.Model([[0, 1]], factors=[3]), r"^factor 3: expected a pair \(variables, table\)$"),
        (lambda: cz.Model([[0, 1]], names=3), r"^names: expected a string for each variable, found 3$"),
        (
            lambda: cz.Model([[0, 1]], state_names=[3]),
            r"^state_names of variable 0: expected a list of strings, found 3$",
        ),
    ],
)
def test_errors_say_what_to_do(ask, message, monkeypatch):
    monkeypatch.setattr(Foreign, "__module__", "networkx.classes")
    with pytest.raises(cz.errors.ClampzError, match=message):
        ask()


def test_an_index_out_of_range_says_which_there_are():
    with pytest.raises(IndexError, match=r"^index 9: expected one from 0 to 2$"):
        cz.exact(MODEL).marginals[9]


def test_what_was_found_is_shown_in_one_line():
    assert shown(np.zeros((3, 3))) == "array([[0., 0., 0.], [0., 0., 0.], [0., 0., 0.]])"
    assert shown("x" * 200) == f"'{'x' * 76}..." and len(shown("x" * 200)) == 80


def test_evidence_in_arrays_and_frames_makes_lanes():
    rows = np.array([[0, -1, 2], [1, 1, -1]])
    sets = [{0: 0, 2: 2}, {0: 1, 1: 1}]
    for method in (cz.exact, cz.trw):
        np.testing.assert_array_equal(method(MODEL, evidence=rows).log_z, method(MODEL, evidence=sets).log_z)
        assert method(MODEL, evidence=rows[0]).log_z == method(MODEL, evidence=sets[0]).log_z
    assert [found.log_z for found in cz.solve(MODEL, evidence=rows)] == [
        pytest.approx(cz.solve(MODEL, evidence=known).log_z) for known in sets
    ]
    assert cz.bound(MODEL, evidence=rows[1]).lower == pytest.approx(cz.exact(MODEL, evidence=sets[1]).log_z)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"c": [2, None], "a": [0, 1], "b": [None, 1]})
    np.testing.assert_array_equal(cz.exact(MODEL, evidence=frame).log_z, cz.exact(MODEL, evidence=sets).log_z)
    assert len(cz.exact(MODEL, evidence=frame[:1])) == 1  # a lane for each row, also of one
