"""Files as bytes: read and written whole, with gzip, and every trouble a FormatError of one line."""

import codecs
import gzip
import os
import stat
import zlib
from io import BytesIO
from pathlib import Path

from clampz.display.atomic_write import written_whole
from clampz.errors import FormatError, shown

AnyPath = str | os.PathLike[str]

GZIP_MAGIC = b"\x1f\x8b"
# How text may begin that says how it is encoded, as editors and shells of Windows have it begin.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# A compressed file may unpack to this much at once, and beyond that to MAX_RATIO times its size: tables of equal values
# shrink a hundredfold, and gzip's limit, reached by nothing but a file of one repeated byte, is a thousand.
FREE_BYTES = 2**26
MAX_RATIO = 200


def load(path: AnyPath) -> bytes:
    """Read a file, decompressed, and as UTF-8 without a byte order mark."""
    check_path(path)
    try:
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode):  # opening a pipe, or reading a device, need not end
            raise FormatError(
                f"{path}: expected a file, found {'a directory' if stat.S_ISDIR(mode) else 'a device or a pipe'}"
            )
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise _as_format_error(path, "read", error) from None
    return decompressed(path, data)


def check_path(path: object) -> None:
    """Refuse what is no path."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise FormatError(f"expected the path of a file, found {shown(path)}")


def decompressed(path: AnyPath, data: bytes) -> bytes:
    """Decompress bytes if they are compressed, and decode text with a byte order mark to UTF-8."""
    if data.startswith(GZIP_MAGIC):
        data = _unpacked(path, data)
    for mark, encoding in MARKS:
        if data.startswith(mark):
            try:
                return data[len(mark) :].decode(encoding).encode() if encoding != "utf-8" else data[len(mark) :]
            except UnicodeError as error:
                raise FormatError(f"{path}: expected text in {encoding}, as it begins, found {error}") from None
    return data


def most_unpacked(num_bytes: int) -> int:
    """Return how many bytes `num_bytes` compressed ones may unpack to."""
    return max(FREE_BYTES, MAX_RATIO * num_bytes)


def _unpacked(path: AnyPath, data: bytes) -> bytes:
    limit = most_unpacked(len(data))
    try:
        unpacked = gzip.GzipFile(fileobj=BytesIO(data)).read(limit + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise FormatError(f"{path}: expected a whole gzip file, found a broken one ({error})") from None
    if len(unpacked) > limit:
        raise FormatError(f"{path}: expected at most {limit} bytes out of {len(data)} compressed ones, found more")
    return unpacked


def replace(path: AnyPath, data: bytes) -> None:
    """Write a file, whole or not at all."""
    check_path(path)
    try:
        target = Path(path).resolve()  # of a link, what it points to
        if target.exists() and not target.is_file():
            raise FormatError(
                f"{path}: expected a file to write, found {'a directory' if target.is_dir() else 'a device or a pipe'}"
            )
        with written_whole(target) as beside:
            beside.write_bytes(gzip.compress(data, mtime=0) if target.name.lower().endswith(".gz") else data)
    except (OSError, ValueError, RuntimeError) as error:  # a zero byte in the name, links in a circle
        raise _as_format_error(path, "written", error) from None


def _as_format_error(path: AnyPath, done: str, error: Exception) -> FormatError:
    if isinstance(error, FormatError):
        return error
    if isinstance(error, FileNotFoundError):
        return FormatError(f"{path}: {'no such file' if done == 'read' else 'no such directory to write it to'}")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    named = f"{str(path)!r:.200}" if "\0" in str(path) else path
    return FormatError(f"{named}: cannot be {done}: {reason}")
