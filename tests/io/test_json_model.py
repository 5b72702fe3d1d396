"""JSON files: what they look like, what people may write, and where an error is."""

import gzip
import json

import numpy as np
import pytest
from lossless_files import LAWN, lawn

import clampz as cz
from clampz.errors import FormatError
from clampz.io import json_model


def test_the_file_is_as_the_documentation_shows_it(tmp_path):
    cz.write(lawn(), tmp_path / "lawn.json")
    assert (tmp_path / "lawn.json").read_text(encoding="utf-8") == LAWN
    assert json.loads(LAWN)["factors"][3] == [["rain", "sprinkler"], [[0.0, "-inf"], [0.0, -3.0]]]
    documented = json_model.__doc__.partition("    {\n")[2].partition("\n    }")[0]
    model = json_model.parse("the docstring", ("{" + documented + "}").encode())
    assert model.names == ("rain", "grass") and model.constant == 0.5


def test_what_people_write():
    text = """{"version": 1, "factors": [[["b", 0], [[1, 2], [3, 4]]], [[0, "b"], [[1, 0], [0, -Infinity]]],
    [[], 2], [["a"], [1, "-inf"]]], "format": "clampz model", "names": ["a", "b"], "num_states": [2, 2]}"""
    found = json_model.parse("x", text.encode())
    assert found.unary[0].tolist() == [1.0, -np.inf] and found.unary[1].tolist() == [0.0, 0.0]
    assert found.pairwise[0, 1].tolist() == [[2.0, 3.0], [2.0, -np.inf]]
    assert found.constant == 2.0 and found.state_names is None
    assert json_model.parse("x", text.replace("\n", "\r\n").encode()) == found


def test_the_last_of_the_axes_is_in_the_innermost_list():
    table = np.arange(24.0).reshape(2, 3, 4)
    found = json_model.parse(
        "x",
        json.dumps(
            {"format": "clampz model", "version": 1, "num_states": [4, 2, 3], "factors": [[[1, 2, 0], table.tolist()]]}
        ).encode(),
    )
    assert found.factors[0].scope == (0, 1, 2)
    np.testing.assert_array_equal(found.factors[0].table, table.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"clampz model"', '"json"', r"expected the format 'clampz model', found 'json'"),
        ('"version": 1', '"version": true', r"expected version 1, found True"),
        ('"num_states": [2, 2, 3],', "", r"expected 'num_states', found 'format', 'version', 'names'"),
        ('"constant": 0.1,', '"constant": 0.1, "edges": [],', r"expected format, .*, constant, found 'edges'"),
        ('"constant": 0.1,', '"names": ["a", "b", "c"],', r"expected every key once, found 'names' again"),
        ('"constant": 0.1,', '"constant": "0.1",', r"constant: expected a number, found '0.1'"),
        ('"constant": 0.1,', '"constant": NaN,', r"constant: expected a finite number, .* found nan"),
        ('"constant": 0.1,', '"constant": 1e21,', r"constant: expected a finite number, at most 1e\+20"),
        ('"constant": 0.1,', '"constant": 0.1', r"line 8: expected JSON, found Expecting ',' delimiter at character 1"),
        ("[2, 2, 3]", "[2, 0, 3]", r"num_states, variable 1: expected a number of states >= 1, found 0"),
        ("[2, 2, 3]", "[2, 2.0, 3]", r"num_states, variable 1: expected a number of states >= 1, found 2.0"),
        ("[2, 2, 3]", "[2, true, 3]", r"num_states, variable 1: expected a number of states >= 1, found True"),
        ("[2, 2, 3]", "3", r"num_states: expected a list of whole numbers, found 3"),
        ("[2, 2, 3]", "[2, 2, 900000000]", r"num_states: expected at most \d+ states in all in a file of this size"),
        ('["rain", "sprinkler", "grass"],', '["rain", "rain", "grass"],', r"names: expected 3 distinct strings"),
        ('["rain", "sprinkler", "grass"],', '["rain", 1, "grass"],', r"names: expected a list of strings, found"),
        ('["rain", "sprinkler", "grass"],', '"abc",', r"names: expected a list of strings, found 'abc'"),
        ('["off", "on"]', '["off"]', r"state_names of variable 1: expected 2 distinct strings, found \['off'\]"),
        ('["off", "on"]', '["off", null]', r"state_names: expected a list of strings for each variable"),
        ('"rain", "sprinkler", "grass"],', '"\\ud800", "b", "grass"],', r"names: expected a list of strings, found"),
        ('["off", "on"], ', "", r"state_names: expected one list per variable, 3 in all, found 2"),
        ('["rain"], [0.0', '["snow"], [0.0', r"factor 0: expected a variable, by index or name, found 'snow'"),
        ('["rain"], [0.0', "[3], [0.0", r"factor 0: expected a variable from 0 to 2, found 3"),
        ('["rain"], [0.0', "[-1], [0.0", r"factor 0: expected a variable from 0 to 2, found -1"),
        ('["rain"], [0.0', "[1.0], [0.0", r"factor 0: expected a variable, by index or name, found 1.0"),
        ('["rain"], [0.0', f"[{10**30}], [0.0", r"factor 0: expected a variable, by index or name, found 1000"),
        ('["rain"], [0.0', '["rain", 0], [0.0', r"factor 0: expected distinct variables, found 0 twice"),
        ('["rain"], [0.0', '"rain", [0.0', r"factor 0: expected \[\[variables\], table\], found \['rain'"),
        ('[["rain"], [0.0, -1.0]]', "null", r"factor 0: expected \[\[variables\], table\], found None"),
        ("[0.0, -1.0]", "[0.0]", r"factor 0: expected a table of shape \(2,\), found \[0.0\]"),
        ("[0.0, -1.0]", "0.0", r"factor 0: expected a table of shape \(2,\), found 0.0"),
        ("[0.0, -3.0]", "[0.0, -3.0, 1]", r"factor 3: expected a table of shape \(2, 2\), found"),
        ("[-2.0, 0.0, 2.0]", "[[-2.0, 0.0, 2.0]]", r"factor 4: expected a table of shape \(2, 2, 3\), found"),
        ("[0.0, -3.0]", "[0.0, null]", r'factor 3, entry 3: expected a number or "-inf", found None'),
        ("[0.0, -3.0]", "[true, -3.0]", r'factor 3, entry 2: expected a number or "-inf", found True'),
        ("[0.0, -3.0]", '["inf", -3.0]', r"factor 3, entry 2: expected a number or \"-inf\", found 'inf'"),
        ("[0.0, -3.0]", "[NaN, -3.0]", r"factor 3, entry 2: expected a log potential, .*, found nan"),
        ("[0.0, -3.0]", "[0.0, 1e400]", r"factor 3, entry 3: expected a log potential, .*, found inf"),
        ("[0.0, -3.0]", f"[0.0, {10**400}]", r'factor 3, entry 3: expected a number or "-inf", found 1000'),
        ("[0.0, -3.0]", f"[0.0, {'9' * 5000}]", r"expected numbers of at most 4300 digits, found a longer one"),
        ("[0.0, -3.0]", "[" * 100_000, r"expected JSON, found brackets inside each other without end"),
    ],
)
def test_errors_name_the_place(old, new, message):
    assert old in LAWN
    with pytest.raises(FormatError, match=rf"^model\.json(, |: ){message}"):
        json_model.parse("model.json", LAWN.replace(old, new, 1).encode())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "line 1: expected JSON, found Expecting value at character 1"),
        (b"[]", r": expected an object, \{...\}, found \[\]"),
        (b"{}", ": expected 'format', found nothing"),
        (b'\n{"format": "\xff"}', "line 2: expected UTF-8, found the byte 0xff"),
        (b"{\n\n,}", "line 3: expected JSON"),
    ],
)
def test_what_is_no_model_at_all(data, message):
    with pytest.raises(FormatError, match=message):
        json_model.parse("model.json", data)


def test_a_small_file_cannot_ask_for_all_memory(tmp_path):
    head = '{"format": "clampz model", "version": 1, "num_states": [2147483647, 2147483647], "factors": ['
    for factors in ("]}", "[[0, 1], [[0]]]]}"):
        (tmp_path / "model.json").write_bytes(gzip.compress((head + factors).encode()))
        with pytest.raises(FormatError, match="expected at most 656"):
            cz.read(tmp_path / "model.json")


def test_module_functions_read_and_write_any_name(tmp_path):
    json_model.write(lawn(), tmp_path / "lawn.txt")
    assert json_model.read(tmp_path / "lawn.txt") == lawn()
