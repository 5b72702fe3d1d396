"""Which runs are asked for, and the command that asks for them."""

import shlex

import pytest

import clampz as cz
from clampz.errors import OptionError
from reproduction.__main__ import make_parser
from reproduction.families import EVERY, FAMILIES, LABELLED
from reproduction.request import LONG, Request, chosen_figures, chosen_tasks
from reproduction.runs.experiments import Task
from reproduction.runs.progress import cost
from reproduction.settings import SETTINGS


def asked(*options: str) -> Request:
    return Request(**vars(make_parser().parse_args(options)))


def tasks(*options: str) -> list[Task]:
    request = asked(*options)
    return chosen_tasks(request, chosen_figures(request))


def test_which_runs_are_needed():
    whole = tasks()
    own = len(SETTINGS) - 1
    assert len(whole) == len(set(whole)) == 44 * 100 + 44 * 40 + 20 * 10 + 12 * 25 + 2 * 25 + own * 7 * (15 + 3)
    assert {task.settings for task in whole} == set(SETTINGS)
    assert {task.experiment for task in tasks("--figure", "times")} == {"times"}
    assert {task.experiment for task in tasks("--figure", "optimal")} == {"optimal"}
    assert {FAMILIES[[f.name for f in FAMILIES].index(task.family)].size for task in tasks("--figure", "optimal")} == {
        10,
        15,
        25,
    }
    assert tasks("--figure", "lamp") == []
    one = tasks("--figure", "success", "--family", "grid", "--size", "49", "--weights=-6,6", "--runs", "20")
    assert one == [Task("paper", "errors", "grid49[-6,6]", run) for run in range(20)]
    assert {task.settings for task in tasks("--figure", "ours", "--quick")} == set(SETTINGS)
    assert {task.family for task in tasks("--figure", "labels-3")} == {f.name for f in LABELLED if f.labels == 3}
    assert {
        task.family
        for task in tasks("--family", "complete", "--family", "grid", "--size", "15", "--size", "49", "--weights=0,2")
    } == {"complete15[0,2]", "grid49[0,2]"}


def test_a_quick_experiment_has_every_family_and_less_of_what_takes_long():
    quick = tasks("--quick")
    assert set(quick) <= set(tasks())
    assert {task.family for task in quick if task.experiment == "errors" and task.run == 0} == {
        family.name for family in EVERY
    }
    assert {task.experiment for task in quick} == {"errors", "times", "optimal", "further"}
    assert all(cost(task) <= LONG[task.experiment] for task in quick if task.experiment != "errors" or task.run)


def test_the_command_to_go_on_is_the_command_that_was_given():
    text = "--quick --figure zoom --family grid --size 49 --weights=-6,6 --runs 7 --jobs 3 --out 'a b'"
    assert asked(*shlex.split(text)).as_command() == f"python -m reproduction {text}"
    assert asked().as_command() == "python -m reproduction"


def test_files_are_studied_in_place_of_families(tmp_path):
    for name in ("a", "b"):
        cz.write(cz.generators.lamp(rng=0), tmp_path / f"{name}.uai")
    found = tasks("--models", f"{tmp_path}/*.uai", "--clamps", "8")
    paths = [str(tmp_path / f"{name}.uai") for name in ("a", "b")]
    assert found == [Task("paper", experiment, path, 0, 8) for experiment in ("errors", "times") for path in paths]
    with pytest.raises(OptionError, match="found none"):
        tasks("--models", f"{tmp_path}/*.xml")
    with pytest.raises(OptionError, match="--runs is for the paper's families"):
        tasks("--models", f"{tmp_path}/*.uai", "--runs", "3")
