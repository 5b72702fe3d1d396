"""The order in which runs are made."""

from reproduction.families import FAMILIES
from reproduction.runs.experiments import Task
from reproduction.runs.making import in_order
from reproduction.runs.progress import cost


def test_a_short_run_is_first_then_rounds_with_the_long_ones_first_and_times_at_the_end():
    tasks = [
        Task("paper", experiment, family.name, run)
        for experiment in ("times", "errors")
        for family in FAMILIES
        for run in range(3)
    ]
    ordered = in_order(tasks)
    assert sorted(ordered) == sorted(tasks)
    assert cost(ordered[0]) == min(map(cost, tasks))
    errors = [task for task in ordered[1:] if task.experiment == "errors"]
    assert ordered[1:] == errors + [task for task in ordered if task.experiment == "times"]
    assert [task.run for task in errors] == sorted(task.run for task in errors)
    last = [cost(task) for task in errors if task.run == 2]
    assert last == sorted(last, reverse=True)
    assert in_order([]) == []
    assert in_order(reversed(tasks)) == ordered
