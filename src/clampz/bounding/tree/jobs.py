"""The jobs of a search that are under way."""

from collections.abc import Iterator
from typing import Any

from clampz.bounding.strategies.exact_sum import WholeModel
from clampz.bounding.tree.frontier import Expand, Refine
from clampz.runtime.workers import Crew, Job, finished

Asked = Refine | Expand | WholeModel
DRAWS, SETS = WholeModel("draws"), WholeModel("sets")


class Jobs:
    """Jobs, and what each was asked for.

    Parameters
    ----------
    in_order
        Whether the plan is fixed: what is asked for next does not depend on which jobs come back together.
    """

    def __init__(self, in_order: bool) -> None:
        self._in_order = in_order
        self._asked: dict[Job[Any], Asked] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def __iter__(self) -> Iterator[Job[Any]]:
        return iter(self._asked)

    def add(self, job: Job[Any], asked: Asked) -> None:
        self._asked[job] = asked

    def pop(self, job: Job[Any]) -> Asked:
        """Remove a job; return what it was asked for."""
        return self._asked.pop(job)

    @property
    def num_busy(self) -> int:
        """Jobs that the crew works on: counts and plans are made beside it."""
        beside = [
            asked for asked in self._asked.values() if isinstance(asked, WholeModel) and asked.by in ("count", "plan")
        ]
        return len(self) - len(beside)

    @property
    def has_only_draws(self) -> bool:
        return all(asked == DRAWS for asked in self._asked.values())

    @property
    def draws(self) -> Job[Any] | None:
        """The draws that are under way."""
        return next((job for job, asked in self._asked.items() if asked == DRAWS), None)

    @property
    def _leaves(self) -> list[Job[Any]]:
        return [job for job, asked in self._asked.items() if isinstance(asked, Refine | Expand)]

    def has_room(self, crew: Crew) -> bool:
        """Whether to ask for more work on leaves; with a fixed plan, for a fixed number at once."""
        if self._in_order:
            return len(self._leaves) < 2 * crew.num_threads
        return self.num_busy < crew.num_at_once

    def to_take(self) -> list[Job[Any]]:
        """Return the jobs that are done; with a fixed plan, of those about leaves only the first that was asked for."""
        later = self._leaves[1:] if self._in_order else []
        return [job for job in finished(self._asked) if job not in later]

    def withdraw(self) -> list[Refine | Expand]:
        """Cancel what has not begun, and drop all that is expanded; return what was asked for about leaves.

        A leaf that is refined by half is better for it.
        """
        leaves = []
        for job, asked in list(self._asked.items()):
            if isinstance(asked, Refine | Expand):
                leaves.append(asked)
            if job.future.cancel() or isinstance(asked, Expand):
                del self._asked[job]
        return leaves
