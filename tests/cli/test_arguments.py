"""Arguments that several commands take."""

from importlib import import_module

import pytest
from running import answer, run

from clampz import cli
from clampz.cli import exit_codes


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("500MB", 500_000_000), ("2GB", 2 * 10**9), ("1GiB", 2**30)])
@pytest.mark.parametrize("command", ["solve", "bound", "info", "uai"])
def test_memory_is_written_one_way_everywhere(command, text, size):
    places = ["model.uai", "-", "-", "PR"] if command == "uai" else ["model.uai"]
    assert cli.make_parser().parse_args([command, *places, "--memory", text]).memory == size


def test_negative_values_need_no_equals_sign():
    parse = cli.make_parser().parse_args
    found = parse(["generate", "grid", "--weights", "-6,6", "--theta", "-.5", "--size", "3", "-o", "-6"])
    assert (found.weights, found.theta, str(found.out)) == ((-6, 6), -0.5, "-6")
    assert parse(["generate", "grid", "--weights=-6,6", "-o", "a.uai"]).weights == (-6, 6)
    assert str(parse(["info", "--json", "--", "-5"]).model) == "-5"


@pytest.mark.parametrize(
    ("module", "function", "arguments"),
    [
        ("solving.solve", "solve", "solve grid.uai"),
        ("cli.commands.mode", "mode", "solve grid.uai --task MPE"),
        ("cli.commands.event", "probability", "solve grid.uai --event 0=1"),
        ("cli.commands.bound", "iter_bounds", "bound grid.uai"),
        ("cli.commands.bound", "bound_marginals", "bound grid.uai --marginals 0"),
        ("cli.commands.sweep", "sweep", "sweep grid.uai --beta 1"),
        ("cli.commands.sample", "sample", "sample grid.uai"),
    ],
)
def test_a_seed_is_given_one_way_everywhere(module, function, arguments, folder, capsys, monkeypatch):
    place = import_module(f"clampz.{module}")
    call, seeds = getattr(place, function), []

    def noted(*args, **words):
        seeds.append(words["options"].seed if "options" in words else words["rng"])
        return call(*args, **words)

    monkeypatch.setattr(place, function, noted)
    for seed in ([], ["--seed", "7"]):
        assert run(*arguments.split(), *seed, "--json") == 0
    assert seeds == [0, 7]
    assert run(*arguments.split(), "--seed", "-1") == exit_codes.BAD_INPUT
    assert "expected a whole number >= 0, found '-1'" in capsys.readouterr().err


def test_another_seed_is_another_result(folder, capsys):
    found = [
        answer(capsys, "solve", "wide.uai", "--method", "mini_buckets", "--seed", seed, "--json")["log_z"]
        for seed in ("0", "1", "1")
    ]
    assert found[0] != found[1] == found[2]


@pytest.mark.parametrize(
    ("words", "said_by"), [(["solve", "m.uai", "--marginals"], "clampz solve"), (["--so"], "clampz")]
)
def test_what_a_command_does_not_know_it_says_itself(capsys, words, said_by):
    assert run(*words) == exit_codes.BAD_INPUT
    assert capsys.readouterr().err == f"{said_by}: unrecognized arguments: {words[-1]} (see {said_by} --help)\n"
