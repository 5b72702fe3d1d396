"""The reproduction as people use it: killed, stopped, spread over a cluster, asked for nonsense; in the end always the
same table."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up_runs import ROOT, always_fails, stand_in

import clampz as cz
from reproduction import pipeline
from reproduction.__main__ import CUT_OFF, main, make_parser
from reproduction.families import FAMILIES
from reproduction.pictures.figures import FIGURES, PaperFigure
from reproduction.request import Request, chosen_tasks
from reproduction.runs.experiments import Outcome, Task
from reproduction.runs.store import Store
from reproduction.settings import SETTINGS

NUM_RUNS, NUM_KILLS = 8, 10
SMALL = ["--figure", "success", "--family", "complete10[0,2]", "--runs", str(NUM_RUNS)]
# The command without its report, which has tests of its own and would take most of the time here.
RUNNER = """
import sys
from reproduction import pipeline
from reproduction.__main__ import main
pipeline.write_report = lambda table, folder, figures, latex: folder / "report.html"
sys.exit(main(sys.argv[1:]))
"""


def start(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """The small experiment, in a session of its own as a terminal would have it."""
    command = [sys.executable, "-c", RUNNER, *SMALL, "--out", str(folder), *options]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True, **streams)


def said(err: str) -> list[str]:
    """Its lines on stderr, but for those on its progress, which come where it takes long."""
    return [line for line in err.splitlines() if not line.startswith("making runs")]


def num_done(folder: Path) -> int:
    """The runs that are in a store which somebody else may be writing."""
    if not (folder / pipeline.STORE).exists():
        return 0
    connection = sqlite3.connect(f"{(folder / pipeline.STORE).as_uri()}?mode=ro", uri=True, timeout=10)
    try:
        return int(connection.execute("select count(*) from runs").fetchone()[0])
    except sqlite3.OperationalError:  # not made yet, or killed in the middle of a write that only a writer can undo
        return 0
    finally:
        connection.close()


def wait_for_runs(folder: Path, count: int, process: "subprocess.Popen[str]") -> None:
    while num_done(folder) < count and process.poll() is None:
        time.sleep(0.01)


def table_of(folder: Path) -> list[tuple[Any, ...]]:
    """Every row but for the seconds, sorted."""
    names = "settings, part, family, run, seed, version, num_variables, num_edges, exact, method, selector, clamps"
    names += ", variable, log_z, converged, num_branches, agree"
    connection = sqlite3.connect(folder / pipeline.STORE)
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    rows = connection.execute(f"select {names} from results order by {names}").fetchall()
    connection.close()
    return rows


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """The small experiment, made in one go: (folder, stdout, stderr)."""
    folder = tmp_path_factory.mktemp("undisturbed") / "out" / "here"
    process = start(folder)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return folder, out, err


def test_what_is_said_and_written(undisturbed):
    folder, out, err = undisturbed
    assert out == f"Report: {folder / 'report.html'}\n"
    first, second, *rest = said(err)
    assert first.startswith(f"{NUM_RUNS} runs to make on ")
    assert first.endswith(f"results in {folder}")
    assert second.startswith(f"{NUM_RUNS} runs made in ")
    assert rest == ["writing the table", "drawing"]
    assert sorted(path.name for path in folder.iterdir()) == [pipeline.PLAIN, pipeline.STORE]
    assert len({row[3] for row in table_of(folder)}) == NUM_RUNS


@pytest.mark.large
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
def test_killed_ten_times_it_ends_with_the_same_table(undisturbed, tmp_path):
    rng, folder, kills = random.Random(4), tmp_path / "out", 0
    while kills < NUM_KILLS:
        before, process = num_done(folder), start(folder, "--jobs", rng.choice("12"))
        if before < NUM_RUNS - 1 and rng.random() < 0.6:
            wait_for_runs(folder, before + 1, process)  # so that some kills come while runs are written
            time.sleep(rng.uniform(0.0, 0.2))
        else:
            time.sleep(rng.uniform(0.0, 2.0))
        process.kill()  # the main process alone, and with no warning
        process.communicate()
        kills += 1
        assert num_done(folder) >= before
    process = start(folder)
    assert "Report" in process.communicate(timeout=600)[0]
    assert table_of(folder) == table_of(undisturbed[0])


@pytest.mark.large
def test_ctrl_c_keeps_what_is_made_and_says_how_to_go_on(undisturbed, tmp_path):
    folder = tmp_path / "out"
    process = start(folder, "--jobs", "1")
    wait_for_runs(folder, 1, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    stopped, how = said(err)[-2:]
    assert stopped == f"stopped; {num_done(folder)} of {NUM_RUNS} runs made, and kept in {folder}. To go on:"
    command = f"python -m reproduction --figure success --family 'complete10[0,2]' --runs {NUM_RUNS} --jobs 1"
    assert how == f"    {command} --out {folder}"
    assert len(said(err)) == 3
    assert [path.name for path in folder.iterdir()] == [pipeline.STORE]
    err = start(folder).communicate(timeout=600)[1]
    assert "are there already" in err
    assert table_of(folder) == table_of(undisturbed[0])


def dask(*arguments: str) -> "subprocess.Popen[bytes]":
    """Start a part of a cluster, somewhere else than in the clone."""
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", *arguments], cwd=tempfile.gettempdir(), **streams)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list["subprocess.Popen[bytes]"]]]:
    """A local Dask cluster: the address of its scheduler, and two workers of one thread each."""
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    processes = [
        dask(
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(file),
        )
    ]
    try:
        worker = (
            "distributed.cli.dask_worker",
            "--scheduler-file",
            str(file),
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
        )
        processes += [dask(*worker, "--local-directory", str(tmp_path)) for _ in range(2)]
        while not file.exists() or '"address"' not in file.read_text():
            time.sleep(0.05)
        address = file.read_text().split('"address": "')[1].split('"')[0]
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.large
def test_a_cluster_that_loses_a_worker_makes_the_same_table(undisturbed, cluster, tmp_path):
    address, workers = cluster
    folder = tmp_path / "out"
    process = start(folder, "--scheduler", address)
    wait_for_runs(folder, 2, process)
    workers[0].kill()
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (0, f"Report: {folder / 'report.html'}\n"), err
    assert said(err)[0].startswith(f"{NUM_RUNS} runs to make on a cluster of ")
    assert said(err)[1].startswith(f"{NUM_RUNS} runs made in ")
    assert table_of(folder) == table_of(undisturbed[0])


# -- in this process, with runs that take no time ---------------------------------------------------------------------


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
    """Makes runs and reports quick; the list has the number of rows and the names of figures of each report."""
    found: list[tuple[int, list[str]]] = []

    def write_report(table: Any, folder: Path, figures: Sequence[PaperFigure], latex: bool) -> Path:
        found.append((len(table), [figure.name for figure in figures]))
        return folder / "report.html"

    monkeypatch.setattr(pipeline, "write_report", write_report)
    monkeypatch.setattr(
        pipeline, "outcomes_of", lambda tasks, jobs, client: (Outcome(task, stand_in(task)) for task in tasks)
    )
    return found


def run(folder: Path, *options: str) -> int:
    return main(["--out", str(folder), *options])


def test_what_is_done_is_only_drawn_again(reports, tmp_path, monkeypatch, capsys):
    assert run(tmp_path, *SMALL) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    monkeypatch.setattr(pipeline, "outcomes_of", lambda *_: pytest.fail("made runs"))
    assert run(tmp_path, *SMALL, "--scheduler", "tcp://127.0.0.1:9") == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert reports == 2 * [(NUM_RUNS, ["success"])]
    assert capsys.readouterr().err.splitlines()[-2:] == [f"all {NUM_RUNS} runs are in {tmp_path}", "drawing"]


def test_more_runs_are_added_to_those_there_are(reports, tmp_path, capsys):
    assert run(tmp_path, "--quick", "--family", "grid") == 0
    assert run(tmp_path, "--runs", "3", "--family", "grid", "--family", "er", "--figure", "errors") == 0
    (first, names), (second, _) = reports
    assert names == list(FIGURES)
    quick = chosen_tasks(Request(quick=True, family=["grid"]), list(FIGURES.values()))
    assert first == len(quick)
    binary = {family.name for family in FAMILIES}
    known = [t for t in quick if (t.settings, t.experiment) == ("paper", "errors") and t.family in binary]
    assert second == first + 24 * 3 - len(known)
    assert "are there already" in capsys.readouterr().err


def test_what_is_there_can_be_drawn_and_nothing_run(reports, tmp_path, capsys):
    assert run(tmp_path, *SMALL) == 0 and run(tmp_path, "--draw") == 0
    assert reports == [(NUM_RUNS, ["success"]), (NUM_RUNS, list(FIGURES))]
    assert f"all {NUM_RUNS} runs are in" in capsys.readouterr().err


def test_a_published_folder_is_gone_on_with(reports, tmp_path, capsys):
    assert run(tmp_path / "here", *SMALL) == 0
    (tmp_path / "there").mkdir()
    (tmp_path / "here" / pipeline.PLAIN).rename(tmp_path / "there" / pipeline.PLAIN)
    assert run(tmp_path / "there", *SMALL[:-1], str(NUM_RUNS + 2)) == 0
    assert "2 runs to make on " in capsys.readouterr().err
    assert reports[1] == (NUM_RUNS + 2, ["success"]) and num_done(tmp_path / "there") == NUM_RUNS + 2


def test_figures_without_runs_need_none(reports, tmp_path, capsys):
    assert run(tmp_path, "--figure", "lamp", "--figure", "barbell") == 0
    assert reports == [(0, ["lamp", "barbell"])]
    assert "no runs are needed" in capsys.readouterr().err


def test_runs_that_fail_are_told_and_the_rest_is_drawn(reports, tmp_path, monkeypatch, capsys):
    def outcomes(tasks: Sequence[Task], jobs: int, client: object) -> Iterator[Outcome]:
        for task in tasks:
            yield Outcome(task, None, "ValueError: no luck") if task.run == 3 else Outcome(task, stand_in(task))

    monkeypatch.setattr(pipeline, "outcomes_of", outcomes)
    assert run(tmp_path, *SMALL) == CUT_OFF
    assert (
        "reproduction: no run 3 of complete10[0,2] (errors, settings 'paper'): ValueError: no luck\n"
        in capsys.readouterr().err
    )
    assert reports == [(NUM_RUNS - 1, ["success"])]


def test_when_all_fail_it_gives_up(reports, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        pipeline, "outcomes_of", lambda tasks, jobs, client: (Outcome(task, None, "no luck") for task in tasks)
    )
    assert run(tmp_path, "--quick") == CUT_OFF
    assert "given up after 10 failures; 0 of " in capsys.readouterr().err
    assert reports == []
    with pytest.raises(ValueError, match="never"):
        always_fails(Task("paper", "errors", "complete10[0,2]", 0))


def test_ctrl_c_while_drawing_says_how_to_go_on(reports, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pipeline, "write_report", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
    assert run(tmp_path, *SMALL) == 130
    assert capsys.readouterr().err.endswith(f"--runs {NUM_RUNS} --out {tmp_path}\n")


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (
            ["--family", "gird"],
            ["unknown family 'gird'; did you mean 'grid'", "er, regular, complete", "complete15[-12,12]"],
        ),
        (["--figure", "succes"], ["unknown figure 'succes'; did you mean 'success'", "histogram"]),
        (["--size", "50"], ["--size: expected one of 10, 15, 25, 49, 81, found 50"]),
        (["--family", "complete", "--size", "49"], ["--size: expected one of 10, 15 for complete, found 49"]),
        (["--weights=1,2"], ["--weights: expected one of 0,2  0,6  -6,6  -12,12, found 1,2"]),
        (["--weights=6"], ["--weights: expected two numbers, as in --weights=-6,6, found '6'"]),
        (["--runs", "0"], ["--runs 0: expected a whole number >= 1"]),
        (["--jobs", "0"], ["--jobs 0: expected a whole number >= 1"]),
        (["--jobs", "2", "--scheduler", "tcp://127.0.0.1:9"], ["expected one of them"]),
    ],
)
def test_nonsense_is_refused_before_anything_is_written(options, messages, tmp_path, capsys):
    assert run(tmp_path / "out", *options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("reproduction: ")
    assert err.count("\n") == 1
    for message in messages:
        assert message in err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("options", [["--runs", "few"], ["--size", "7x7"], ["--weights", "-6,6"], ["--fig", "success"]])
def test_the_parser_refuses_the_rest(options, capsys):
    with pytest.raises(SystemExit) as ending:
        make_parser().parse_args(options)
    assert ending.value.code == 2


def test_a_scheduler_that_does_not_answer_leaves_nothing(tmp_path, monkeypatch, capsys):
    pytest.importorskip("distributed")
    connected = pipeline.connected
    monkeypatch.setattr(pipeline, "connected", lambda address: connected(address, seconds=0.5))
    assert run(tmp_path / "out", *SMALL, "--scheduler", "tcp://127.0.0.1:9") == 2
    assert capsys.readouterr().err.startswith(
        "reproduction: --scheduler tcp://127.0.0.1:9: no Dask scheduler answers there within 0.5 s"
    )
    assert not any(tmp_path.iterdir())


def test_a_bad_place_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        assert run(folder, *SMALL) == 2
        assert f"--out {folder}: expected a folder, found the file {tmp_path / 'file'}" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_without_permission_is_refused(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert run(tmp_path / "out", *SMALL) == 2
    assert "no permission to write to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "change", "message"),
    [("999.0", {}, "newer than this one"), (cz.__version__, {"warm_starts": 7}, "other settings")],
)
def test_a_folder_of_others_is_refused_and_left_alone(version, change, message, reports, tmp_path, capsys):
    described = {"paper": SETTINGS["paper"].described() | change}
    with Store(tmp_path / pipeline.STORE, settings=described, version=version) as store:
        store.make()
        store.add(stand_in(Task("paper", "errors", "grid25[0,2]", 0)))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(tmp_path, *SMALL) == 2
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert reports == []


def test_runs_of_an_older_version_are_told(reports, tmp_path, capsys):
    with Store(tmp_path / pipeline.STORE, version="0.0.1") as store:
        store.make()
        store.add(stand_in(Task("paper", "errors", "complete10[0,2]", 0)))
    assert run(tmp_path, *SMALL) == 0
    assert "has runs of clampz 0.0.1 with the same settings: they are kept" in capsys.readouterr().err


def test_a_folder_that_is_in_use_is_refused(reports, tmp_path, capsys):
    pytest.importorskip("fcntl")
    with pipeline.only_one(tmp_path):
        assert run(tmp_path, *SMALL) == 2
    assert "another reproduction is running in this folder" in capsys.readouterr().err


def test_a_full_disk_is_one_line(reports, tmp_path, monkeypatch, capsys):
    def full(table: object, folder: Path, figures: object, latex: bool) -> Path:
        raise OSError(28, "No space left on device", str(folder / "figures"))

    monkeypatch.setattr(pipeline, "write_report", full)
    assert run(tmp_path, *SMALL) == 2
    assert (
        capsys.readouterr().err.splitlines()[-1]
        == f"reproduction: {tmp_path / 'figures'}: No space left on device; every finished run is kept"
    )
    assert Store.check(tmp_path / pipeline.STORE) == {
        Task("paper", "errors", "complete10[0,2]", run) for run in range(NUM_RUNS)
    }


def test_a_result_that_is_no_number_is_a_failure(reports, tmp_path, monkeypatch, capsys):
    def outcomes(tasks: Sequence[Task], jobs: int, client: object) -> Iterator[Outcome]:
        for task in tasks:
            finished = stand_in(task)
            yield Outcome(task, replace(finished, exact=float("nan")) if task.run == 0 else finished)

    monkeypatch.setattr(pipeline, "outcomes_of", outcomes)
    assert run(tmp_path, *SMALL) == CUT_OFF
    assert "no run 0 of complete10[0,2]" in capsys.readouterr().err
    assert reports == [(NUM_RUNS - 1, ["success"])]
