"""Making runs on a cluster: schedulers that do not answer or forget, and workers of another version."""

import socket
import sys
from zipfile import ZipFile

import pytest
from made_up_runs import TASKS, stand_in

import clampz as cz
from reproduction.runs.cluster import ClusterError, connected, on_cluster
from reproduction.runs.experiments import Outcome


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:9", "tcp://no-such-host.invalid:8786", "host:port:8786", "http://127.0.0.1:9", ""]
)
def test_a_scheduler_that_does_not_answer_is_an_error(address):
    pytest.importorskip("distributed")
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler answers there within 0\.5 s") as raised,
        connected(address, seconds=0.5),
    ):
        pytest.fail("connected")
    assert "\n" not in str(raised.value)


def test_a_listener_that_says_nothing_is_no_scheduler():
    pytest.importorskip("distributed")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ClusterError, match="no Dask scheduler answers there"), connected(address, seconds=0.5):
            pytest.fail("connected")


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'clampz\[cluster\]'"), connected("tcp://127.0.0.1:9"):
        pytest.fail("connected")


class FakeFuture:
    def __init__(self, result: object, status: str = "finished") -> None:
        self.result, self.status = result, status

    def release(self) -> None:
        pass


class FakeClient:
    """A cluster whose workers are of another version, or whose scheduler goes away."""

    status, loop = "running", None

    def __init__(self, version: str = cz.__version__, status: str = "finished") -> None:
        self.version, self.future_status, self.cancelled = version, status, list[FakeFuture]()
        self.sent = list[str]()

    def upload_file(self, archive: str) -> None:
        with ZipFile(archive) as found:
            self.sent = found.namelist()

    def submit(self, function, perform, task, **options: object) -> FakeFuture:
        return FakeFuture((self.version, perform(task)), self.future_status)

    def cancel(self, futures: list[FakeFuture], force: bool) -> None:
        self.cancelled += futures


class FakeCompleted:
    def __init__(self, futures, loop: None, with_results: bool, raise_errors: bool) -> None:
        self.futures = list(futures)

    def has_ready(self) -> bool:
        return bool(self.futures)

    def next_batch(self, block: bool) -> list[tuple[FakeFuture, object]]:
        return [(future, future.result) for future in (self.futures.pop(0),)]


@pytest.fixture
def fake_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "as_completed", FakeCompleted)


def test_workers_of_another_version_are_refused(fake_dask):
    client = FakeClient(version="0.0.1")
    with pytest.raises(ClusterError, match=r"the workers have clampz 0\.0\.1"):
        list(on_cluster(client, TASKS, stand_in))
    assert len(client.cancelled) == len(TASKS) - 1


def test_a_scheduler_that_forgets_is_an_error(fake_dask):
    with pytest.raises(ClusterError, match="every finished run is kept"):
        list(on_cluster(FakeClient(status="cancelled"), TASKS, stand_in))


def test_workers_are_sent_the_code_and_its_texts(fake_dask):
    client = FakeClient()
    assert len(list(on_cluster(client, TASKS, stand_in))) == len(TASKS)
    assert {"reproduction/runs/experiments.py", "reproduction/pictures/styles.toml"} <= set(client.sent)


def test_workers_that_cannot_import_the_code_are_an_error(fake_dask, monkeypatch):
    def fail(client: FakeClient, archive: str) -> None:
        raise ModuleNotFoundError("No module named 'clampz'")

    monkeypatch.setattr(FakeClient, "upload_file", fail)
    with pytest.raises(ClusterError, match=r"the workers need clampz, .* No module named 'clampz'"):
        list(on_cluster(FakeClient(), TASKS, stand_in))


def test_stopping_cancels_the_rest(fake_dask):
    client = FakeClient()
    outcomes = on_cluster(client, TASKS, stand_in)
    assert next(outcomes) == Outcome(TASKS[0], stand_in(TASKS[0]))
    outcomes.close()
    assert len(client.cancelled) == len(TASKS) - 1
