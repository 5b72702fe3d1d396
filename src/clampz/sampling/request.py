"""The request for samples, checked before any work begins."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np

from clampz.display.formatting import counted
from clampz.errors import OptionError
from clampz.model import Evidence, Model
from clampz.model.model_checks import check_model
from clampz.runtime.budget import Progress
from clampz.runtime.options import Options, bytes_in_words, check_name, check_whole, memory_allowed
from clampz.runtime.progress import Listener
from clampz.runtime.seeds import Seed, as_seed
from clampz.sampling.proposals import BLOCK_STATES
from clampz.sampling.samples import Kind

METHODS: tuple[str, ...] = ("auto", *get_args(Kind))
# Share of the memory that samples may take; the rest is for what they are drawn from.
SAMPLES_SHARE = 0.5
# Bytes of a sample beside its states; of a number of a block of draws, with all that is made of it.
SAMPLE_BYTES, NUMBER_BYTES = 32, 32


@dataclass(frozen=True, eq=False)
class SampleRequest:
    """The arguments of `sample` and `sample_blocks`.

    Attributes
    ----------
    num_at_once
        Samples that are in memory together.
    model
        As the user knows it.
    """

    model: Model
    num_at_once: int
    evidence: Evidence | None
    method: str
    max_table: int | None
    time: float | None
    memory: int | str | None
    threads: int | None
    rng: Seed
    progress: Listener[Progress]

    def __post_init__(self) -> None:
        check_model(self.model)
        check_whole("num_samples", self.num_at_once, 0)
        check_name("method", self.method, METHODS)
        check_whole("max_table", self.max_table, 2, or_none=True)
        _ = self.options, self.seed
        if self.evidence is not None:
            self.model.findings(self.evidence)
        if self.samples_bytes > SAMPLES_SHARE * self.allowed:
            raise OptionError(
                f"{counted(self.num_at_once, 'sample')} of {counted(self.model.num_variables, 'variable')} take "
                f"{bytes_in_words(self.samples_bytes)}, and {bytes_in_words(SAMPLES_SHARE * self.allowed)} are allowed "
                "for them: ask for fewer, allow more with memory=, or take them block by block with cz.sample_blocks"
            )

    @cached_property
    def options(self) -> Options:
        return Options(time=math.inf if self.time is None else self.time, threads=self.threads)

    @cached_property
    def seed(self) -> int:
        """A number that follows from `rng`, also from none; a generator gives another one every time."""
        return as_seed(self.rng)

    @cached_property
    def allowed(self) -> int:
        """Bytes in all."""
        return memory_allowed(self.memory)

    @property
    def samples_bytes(self) -> int:
        return self.num_at_once * (4 * self.model.num_variables + SAMPLE_BYTES)

    @property
    def bytes_left(self) -> int:
        """Bytes left for proposals beside the samples, blocks of draws under way, and copies of the model."""
        blocks = self.options.num_threads * NUMBER_BYTES * max(BLOCK_STATES, self.model.num_variables)
        blocks = min(blocks, self.allowed // 4)  # (fewer threads are busy where memory is short)
        copies = 2 * sum(array.nbytes for array in self.model.contents if isinstance(array, np.ndarray))
        return max(0, self.allowed - self.samples_bytes - blocks - copies)
