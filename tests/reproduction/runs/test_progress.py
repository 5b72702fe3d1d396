"""How far the runs are, and how long the rest will take."""

from reproduction.runs.experiments import Finished, Outcome, Task
from reproduction.runs.progress import Pace, as_clock, cost


def test_time_left_is_that_of_the_runs_left():
    clock = [0.0]
    tasks = [Task("paper", "errors", family, run) for family in ("grid25[0,2]", "grid81[-12,12]") for run in range(10)]
    pace = Pace(tasks, lambda: clock[0])
    assert pace.rate() == pace.left() == "" and str(pace) == "making runs · 0 of 20 runs"
    for task in tasks[:10]:  # ten seconds each, two at a time, the first one after compilation
        clock[0] += 5
        pace.add(Outcome(task, Finished(task, 0, 25, 50, 1.0, 10.0, ())))
    assert pace.rate() == "12.0 runs/min"
    ratio = cost(tasks[10]) / cost(tasks[0])
    assert pace.left() == f"{as_clock(10 * 10 * ratio / 2)} left"
    for task in tasks[10:15]:
        clock[0] += 10
        pace.add(Outcome(task, Finished(task, 0, 81, 162, 1.0, 20.0, ())))
    assert pace.left() == "0:50 left"
    assert str(pace) == f"making runs · 15 of 20 runs · {pace.rate()} · 0:50 left"
