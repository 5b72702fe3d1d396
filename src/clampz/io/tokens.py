"""Tokens: the numbers of a text file, and errors that point to where they stand.

All formats here are words and numbers between white space.  Numbers are kept, 8 bytes each, and the text; a list of
tokens would take thirty times the memory of a file of short ones.  Where a token stands is found again when an error
needs it.
"""

import os
import re
from array import array
from itertools import islice
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from clampz.errors import FormatError
from clampz.numerics import Floats, Integers

SPACE = re.compile(rb"\s")
TOKEN = re.compile(rb"\S+")

# Bytes of text that are split at a time.
PIECE = 2**16
# No number is longer; what is longer without white space is no text.
LONGEST_TOKEN = 2000
# Whole numbers up to this are floats without rounding.
LARGEST_WHOLE = 2.0**53


class Tokens:
    """The tokens of one file: first `num_words` words, then numbers up to the first token that is none.

    What is behind that token counts as missing, and the error finds it there.

    Attributes
    ----------
    words
        The words in front.
    numbers
        The numbers; places in the file are given by their index.
    sequence
        The same for a loop in Python, which is quicker with it.
    complete
        Whether they reach to the end of the file.
    """

    def __init__(self, path: str | os.PathLike[str], data: bytes, *, num_words: int = 0, comment: bytes = b"") -> None:
        self.path = os.fspath(path)
        self.num_words = num_words
        # comments go, their line ends stay
        self.data = re.sub(b"(?:" + comment + b")[^\n]*", b"", data) if comment and re.search(comment, data) else data
        front = list(islice(TOKEN.finditer(self.data), num_words))
        self.words = [match.group()[:LONGEST_TOKEN].decode("ascii", errors="replace") for match in front]
        self.sequence, self.complete = _numbers(self.data, front[-1].end() if front else 0)
        self.numbers: Floats = np.frombuffer(self.sequence) if self.sequence else np.empty(0)

    def whole(self, at: int, count: int, least: int, what: str) -> Integers:
        """Return `count` whole numbers from `numbers[at]` on."""
        values = self.numbers[at : at + count]
        wrong = np.flatnonzero(~are_whole(values, least, 2.0**31))
        if wrong.size:
            self.refuse(at + int(wrong[0]), what)
        if len(values) < count:
            self.refuse(len(self.numbers), what)
        return values.astype(np.int64)

    def end(self, at: int, after: str) -> None:
        """Refuse anything that follows `numbers[at - 1]`."""
        if at < len(self.numbers) or not self.complete:
            self.refuse(at, f"the end of the file after {after}")

    def refuse(self, at: int, what: str, factor: int | None = None) -> NoReturn:
        """Raise that `numbers[at]` is not what is needed there: the file ends, or has something else."""
        self.fail(at, f"expected {what}, found {self.found(at)}", factor)

    def found(self, at: int) -> str:
        """Return what stands in the place of `numbers[at]`; of words when it is negative."""
        match = self._match(at)
        if match is None:
            return "the end of the file"
        text = match.group()[:40].decode("utf-8", errors="replace")
        return text if 0 <= at < len(self.numbers) else repr(text)

    def fail(self, at: int, message: str, factor: int | None = None) -> NoReturn:
        """Raise with the line of `numbers[at]`; only now are lines counted."""
        match = self._match(at)
        line = 1 + self.data.count(b"\n", 0, match.start() if match else len(self.data.rstrip()))
        raise FormatError(f"{self.path}, line {line}{'' if factor is None else f', factor {factor}'}: {message}")

    def _match(self, at: int) -> re.Match[bytes] | None:
        return next(islice(TOKEN.finditer(self.data), at + self.num_words, None), None)


def are_whole(values: Floats, least: float, beyond: float = LARGEST_WHOLE) -> NDArray[np.bool_]:
    """Mask the whole numbers from `least` to below `beyond`."""
    whole: NDArray[np.bool_] = (values >= least) & (values < beyond) & (values == np.floor(values))
    return whole


def _numbers(data: bytes, begin: int) -> "tuple[array[float], bool]":
    """Parse the numbers from `data[begin]` on; whether nothing else came."""
    found = array("d")
    while begin < len(data):
        end, cut = begin + PIECE, False
        if end < len(data):  # on to where the token ends
            last = end + LONGEST_TOKEN + 1  # with the space behind the longest
            space = SPACE.search(data, end, last)
            cut = space is None and last < len(data)
            end = space.start() if space else last
        tokens = data[begin:end].split()
        if cut:
            tokens.pop()
        try:
            found.extend(map(_number if b"_" in data[begin:end] else float, tokens))
        except ValueError:
            return found, False
        if cut:
            return found, False
        begin = end
    return found, True


def _number(token: bytes) -> float:
    """Parse like float(), which reads 1_000 too."""
    if b"_" in token:
        raise ValueError
    return float(token)
