"""Lines of numbers, then ``index:value`` pairs: the rows of LIBSVM's data and model files.

Words are set apart by blanks or tabs, what follows a ``#`` is a comment, and empty lines are
skipped. Blocks of whole lines are parsed with a few array operations. A block with anything unusual
in it is read again word by word, which accepts it or finds the line to complain about. Memory grows
with the file and never with a number that is written in it.
"""

import re
from collections.abc import Iterable
from typing import BinaryIO, NamedTuple

import numpy as np

LARGEST_INDEX = 2**31 - 1  # LIBSVM's indices are ints
BLOCK_BYTES = 2**20

DIGIT, MARK, COLON, BLANK, NEWLINE, FOREIGN = range(6)
KINDS = np.full(256, FOREIGN, np.uint8)
KINDS[list(b"0123456789")] = DIGIT
KINDS[list(b"+-.eE")] = MARK
KINDS[list(b":")] = COLON
KINDS[list(b" \t\r")] = BLANK
KINDS[list(b"\n")] = NEWLINE
COLON_TO_BLANK = bytes.maketrans(b":", b" ")

COMMENT = re.compile(rb"#[^\n]*")
NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
INDEX = re.compile(rb"\d{1,18}")


class Layout(NamedTuple):
    """What a line may hold.

    Parameters
    ----------
    name : str
        The file, for messages.
    numbers : int
        How many plain numbers come first: a label, or the coefficients of a support vector.
    what : str
        What these numbers are called.
    serial : bool
        Whether every row begins with ``0:i``, as rows of a kernel matrix do; else indices start
        at 1.
    largest : int
        The largest index allowed.
    closed : bool
        Whether the last line must have its end; where it has none, the file was cut off.
    """

    name: str
    numbers: int
    what: str
    serial: bool = False
    largest: int = LARGEST_INDEX
    closed: bool = False


class Rows(NamedTuple):
    """Numbers of shape (rows, layout.numbers), and the pairs, row by row as in a CSR matrix."""

    numbers: np.ndarray
    lengths: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def read_rows(file: BinaryIO, line: int, layout: Layout) -> Rows:
    """Read a file from where it stands, which is line number `line`, to its end."""
    blocks = [_join([], [], [], [], layout)]
    while lines := file.readlines(BLOCK_BYTES):
        rows = _parse_block(b"".join(lines), layout)
        blocks.append(_parse_lines(lines, line, layout) if rows is None else rows)
        line += len(lines)
        if layout.closed and not lines[-1].endswith(b"\n"):
            raise ValueError(
                f"{layout.name}, line {line - 1}: the last line has no end; the file is cut off"
            )
    return Rows(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


def pairs_text(indices: Iterable[int], values: Iterable[float]) -> str:
    """Return all pairs as text, with a blank before each."""
    return "".join(
        f" {index}:{number_text(value)}" for index, value in zip(indices, values, strict=True)
    )


def split_serials(rows: Rows) -> tuple[np.ndarray, Rows]:
    """Return i of the pairs ``0:i`` that all rows begin with, and the rows without them."""
    first = np.cumsum(rows.lengths) - rows.lengths
    others = np.ones(len(rows.indices), bool)
    others[first] = False
    rest = Rows(rows.numbers, rows.lengths - 1, rows.indices[others], rows.values[others])
    return rows.values[first], rest


def _parse_block(block: bytes, layout: Layout) -> Rows | None:
    """Parse whole lines at once; None if there is anything unusual in them."""
    if b"#" in block:
        block = COMMENT.sub(b"", block)
    kind = KINDS[np.frombuffer(block, np.uint8)]
    if (kind == FOREIGN).any():
        return None
    edges = np.flatnonzero(np.diff(kind < BLANK, prepend=False, append=False))
    begin, end = edges[::2], edges[1::2]  # of every word
    line = np.searchsorted(np.flatnonzero(kind == NEWLINE), begin)
    first = np.flatnonzero(np.diff(line, prepend=-1))  # the first word of every line that has one
    words = np.diff(first, append=len(begin))
    if (words < layout.numbers).any():
        return None

    # Each further word has exactly one colon, behind digits only and before something.
    is_pair = np.arange(len(begin)) - np.repeat(first, words) >= layout.numbers
    begin, end, colon = begin[is_pair], end[is_pair], np.flatnonzero(kind == COLON)
    if len(colon) != len(begin) or not ((begin < colon) & (colon < end - 1)).all():
        return None
    marks = np.flatnonzero(kind == MARK)
    if (np.searchsorted(marks, begin) != np.searchsorted(marks, colon)).any():
        return None

    try:
        parsed = np.fromiter(map(float, block.translate(COLON_TO_BLANK).split()), np.float64)
    except ValueError:
        return None
    place = np.arange(len(is_pair)) + np.cumsum(is_pair) - is_pair  # of every word in `parsed`
    indices, values = parsed[place[is_pair]], parsed[place[is_pair] + 1]
    lengths = words - layout.numbers
    if not np.isfinite(parsed).all() or not _in_order(indices, lengths, layout):
        return None
    numbers = parsed[place[~is_pair]].reshape(-1, layout.numbers)
    return Rows(numbers, lengths.astype(np.int64), indices.astype(np.int32), values)


def _in_order(indices: np.ndarray, lengths: np.ndarray, layout: Layout) -> bool:
    if layout.serial and (lengths == 0).any():
        return False
    starts = (np.cumsum(lengths) - lengths)[lengths > 0]
    lowest = indices[starts]
    falls = np.flatnonzero(np.diff(indices) <= 0) + 1
    return bool(
        ((lowest == 0) if layout.serial else (lowest >= 1)).all()
        and np.isin(falls, starts).all()
        and (indices <= layout.largest).all()
    )


def _parse_lines(lines: list[bytes], line: int, layout: Layout) -> Rows:
    """Parse line by line; raise ValueError with the number of a line that is wrong."""
    numbers: list[float] = []
    lengths, indices, values = [], [], []
    for place, text in enumerate(lines, line):
        words = text.partition(b"#")[0].split()
        if not words:
            continue
        try:
            numbers += _plain_numbers(words, layout)
            pairs = _pairs(words[layout.numbers :], layout)
        except ValueError as error:
            raise ValueError(f"{layout.name}, line {place}: {error}") from None
        lengths.append(len(pairs))
        indices += [index for index, _ in pairs]
        values += [value for _, value in pairs]
    return _join(numbers, lengths, indices, values, layout)


def _join(
    numbers: list[float],
    lengths: list[int],
    indices: list[int],
    values: list[float],
    layout: Layout,
) -> Rows:
    return Rows(
        np.array(numbers, np.float64).reshape(-1, layout.numbers),
        np.array(lengths, np.int64),
        np.array(indices, np.int32),
        np.array(values, np.float64),
    )


def _plain_numbers(words: list[bytes], layout: Layout) -> list[float]:
    found = words[: layout.numbers]
    if len(found) < layout.numbers or any(b":" in word for word in found):
        raise ValueError(f"a line begins with the {layout.what} ({layout.numbers} expected)")
    return [finite_number(word, layout.what) for word in found]


def _pairs(words: list[bytes], layout: Layout) -> list[tuple[int, float]]:
    pairs: list[tuple[int, float]] = []
    last = -1 if layout.serial else 0
    for word in words:
        index_text, colon, value_text = word.partition(b":")
        if not colon:
            raise ValueError(
                f"{shown(word)} is no index:value pair, and the {layout.what} "
                f"({layout.numbers} expected) came before"
            )
        if not INDEX.fullmatch(index_text):
            raise ValueError(f"index {shown(index_text)} is not a whole number >= 1")
        index = int(index_text)
        if index <= last:
            raise ValueError(_disorder(index, last))
        if index > layout.largest:
            raise ValueError(f"index {index} is larger than {layout.largest}, the largest allowed")
        pairs.append((index, finite_number(value_text, f"value of index {index}")))
        last = index
    if layout.serial and (not pairs or pairs[0][0] != 0):
        raise ValueError("a row of a kernel matrix begins with 0:i, its serial number")
    return pairs


def _disorder(index: int, last: int) -> str:
    if last == 0 and index == 0:
        return "index 0, but indices start at 1; 0:i belongs to kernel matrices (precomputed)"
    return f"index {index} after index {last}, but indices must ascend"


def finite_number(word: bytes, what: str) -> float:
    """Return the number that a word is; `what` it is goes into the error."""
    if not NUMBER.fullmatch(word):
        raise ValueError(f"{what} {shown(word)} is not a finite number")
    value = float(word)
    if not np.isfinite(value):
        raise ValueError(f"{what} {shown(word)} is too large")
    return value


def shown(word: bytes) -> str:
    """Quote the beginning of a word, whatever bytes it holds."""
    return repr(word[:40].decode("ascii", "backslashreplace"))
