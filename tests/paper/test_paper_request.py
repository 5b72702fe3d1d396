"""Which runs are asked for, and the command that asks for them."""

import shlex

from clampz import cli
from clampz.cli.paper import requested
from clampz.paper.families import FAMILIES
from clampz.paper.figures import figures_named
from clampz.paper.request import LONG, Request, chosen_tasks
from clampz.paper.running import cost
from clampz.paper.runs import Task
from clampz.paper.settings import SETTINGS


def asked(*options: str) -> Request:
    return requested(cli.make_parser().parse_args(["paper", *options]))


def tasks(*options: str) -> list[Task]:
    request = asked(*options)
    return chosen_tasks(request, figures_named(request.figure or ()))


def test_which_runs_are_needed():
    whole = tasks()
    assert len(whole) == len(set(whole)) == 44 * 100 + 44 * 5 + 20 * 10
    assert {task.settings for task in whole} == {"paper"}
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
    assert {task.settings for task in tasks("--ours", "--quick")} == set(SETTINGS)
    assert {
        task.family
        for task in tasks("--family", "complete", "--family", "grid", "--size", "15", "--size", "49", "--weights=0,2")
    } == {"complete15[0,2]", "grid49[0,2]"}


def test_a_quick_experiment_has_every_family_and_less_of_what_takes_long():
    quick = tasks("--quick")
    assert set(quick) <= set(tasks())
    assert {task.family for task in quick if task.experiment == "errors" and task.run == 0} == {
        family.name for family in FAMILIES
    }
    assert {task.experiment for task in quick} == {"errors", "times", "optimal"}
    assert max(cost(task) for task in quick if task.experiment != "errors" or task.run) <= LONG


def test_the_command_to_go_on_is_the_command_that_was_given():
    text = "--quick --ours --figure zoom --family grid --size 49 --weights=-6,6 --runs 7 --jobs 3 --out 'a b'"
    assert asked(*shlex.split(text)).as_command() == f"clampz paper {text}"
    assert asked().as_command() == "clampz paper"
