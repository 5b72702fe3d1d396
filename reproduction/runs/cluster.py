"""Make runs on the workers of a Dask cluster, which may come and go."""

import logging
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import clampz as cz
from clampz.errors import ClampzError
from reproduction.runs.cores import MAX_RETRIES, TICK_SECONDS, Perform
from reproduction.runs.experiments import Finished, Outcome, Task, perform

# A scheduler that has not answered by then does not.
ANSWER_SECONDS = 10.0
# The clone that this is run in.
ROOT = Path(__file__).parents[2]
GONE = "the scheduler has gone, or has forgotten its tasks; every finished run is kept: run the same command again"


class ClusterError(ClampzError, RuntimeError):
    """Refuse a cluster that cannot be used: its scheduler does not answer or has gone, or its workers have another
    clampz."""


@contextmanager
def connected(address: str, seconds: float = ANSWER_SECONDS) -> Iterator[Any]:
    """Connect to the Dask scheduler at this address."""
    import asyncio  # slow, and no command but this one needs it

    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError:
        raise ClusterError(
            "a cluster needs Dask, and distributed is not installed: pip install 'clampz[cluster]'"
        ) from None
    quiet = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # Dask logs tracebacks; what goes wrong is said below, in one line
    try:
        try:
            # a client that fails would complain for itself, when it is collected
            asyncio.run(asyncio.wait_for(_answered(address, seconds), 1.1 * seconds))
            client = distributed.Client(address, timeout=seconds, set_as_default=False)
        except Exception as error:
            # whatever comes of reading what another says as Dask's protocol; a web server's answer is a MemoryError
            reason = "" if isinstance(error, MemoryError) else f" ({' '.join(str(error).split())})".replace(" ()", "")
            raise ClusterError(
                f"--scheduler {address}: no Dask scheduler answers there within {seconds:g} s{reason}"
            ) from None
        try:
            yield client
        finally:
            client.close(timeout=seconds)
    finally:
        logging.disable(quiet)


async def _answered(address: str, seconds: float) -> None:
    """Return once somebody who speaks Dask's protocol has answered; Dask itself would wait for ever for one who listens
    and says nothing."""
    comm = await import_module("distributed.comm").connect(address, timeout=seconds)
    await comm.close()


def on_cluster(client: Any, tasks: Sequence[Task], perform: Perform = perform) -> Iterator[Outcome | None]:
    """Make runs on the workers of a Dask cluster, which may come and go."""
    distributed: Any = import_module("distributed")
    name = f"reproduction-{uuid.uuid4().hex[:8]}"
    send_code(client)
    futures = {
        client.submit(
            _perform_there, perform, task, key=f"{name}-{number}", priority=-number, retries=MAX_RETRIES, pure=False
        ): task
        for number, task in enumerate(tasks)
    }
    completed = distributed.as_completed(futures, loop=client.loop, with_results=True, raise_errors=False)
    silent_since: float | None = None
    try:
        while futures:
            batch = list(completed.next_batch(block=False)) if completed.has_ready() else []
            if not batch:
                silent_since = None if client.status == "running" else silent_since or time.monotonic()
                if silent_since is not None and time.monotonic() - silent_since > ANSWER_SECONDS:
                    raise ClusterError(GONE)
                time.sleep(TICK_SECONDS / 4)
                yield None
            for future, result in batch:
                if future.status in ("cancelled", "lost"):
                    raise ClusterError(GONE)
                task = futures.pop(future)
                if future.status == "error":
                    yield Outcome.failed(task, result[1])
                    continue
                version, finished = result
                if version != cz.__version__:
                    mixed = f"the workers have clampz {version}, and this is {cz.__version__}: two versions"
                    raise ClusterError(f"{mixed} would be mixed")
                yield Outcome(task, finished)
                future.release()
    finally:
        if client.status == "running":
            client.cancel(list(futures), force=True)


def send_code(client: Any) -> None:
    """Have the scheduler give this package to its workers, and to those that come later: they need clampz alone."""
    with TemporaryDirectory() as folder:
        archive = shutil.make_archive(f"{folder}/reproduction", "zip", ROOT, "reproduction")
        try:
            client.upload_file(archive)
        except Exception as error:  # whatever a worker says that has no clampz, or cannot write
            needed = "the workers need clampz, and to import `reproduction`, which could not be sent to them"
            raise ClusterError(f"{needed}: {' '.join(str(error).split())}") from None


def _perform_there(perform: Perform, task: Task) -> tuple[str, Finished]:
    """Make a run on a worker, and return it with the version that made it."""
    return cz.__version__, perform(task)
