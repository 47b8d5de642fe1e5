"""Lines of numbers, then ``index:value`` pairs: LIBSVM's data files and its support vectors.

Words are separated by blanks or tabs, a ``#`` starts a comment, and empty lines are skipped. Blocks
of whole lines are parsed with a few array operations. A block with anything unusual in it is parsed
again word by word, which accepts it or finds the line to complain about. Memory grows with the size
of the file, never with a number that is written in it.
"""

import re
from collections.abc import Iterable
from typing import BinaryIO, NamedTuple

import numpy as np

LARGEST_INDEX = 2**31 - 1  # LIBSVM's indices are ints
BLOCK_BYTES = 2**20  # read and parsed at a time

DIGIT, MARK, COLON, BLANK, NEWLINE, FOREIGN = range(6)
KINDS = np.full(256, FOREIGN, np.uint8)
for _kind, _bytes in enumerate((b"0123456789", b"+-.eE", b":", b" \t\r", b"\n")):
    KINDS[list(_bytes)] = _kind
COLON_TO_BLANK = bytes.maketrans(b":", b" ")

COMMENT = re.compile(rb"#[^\n]*")
NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
INDEX = re.compile(rb"\d{1,18}")


class LineFormat(NamedTuple):
    """What a line may hold."""

    file: str  # its name, for messages
    numbers: int  # how many plain numbers come first: a label, or coefficients
    what: str  # what these numbers are called
    serial: bool = False  # every row begins with ``0:i``, as rows of a kernel matrix do
    largest: int = LARGEST_INDEX  # index allowed
    closed: bool = False  # a last line without its end is an error: the file was cut off


class ParsedLines(NamedTuple):
    """Plain numbers of shape (lines, format.numbers), and the pairs as in a CSR matrix."""

    numbers: np.ndarray
    lengths: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def read_lines(file: BinaryIO, line: int, form: LineFormat) -> ParsedLines:
    """Read a file from its position, which is line number `line`, to its end."""
    blocks = [_parse_words([], line, form)]
    while lines := file.readlines(BLOCK_BYTES):
        parsed = _parse_block(b"".join(lines), form)
        blocks.append(_parse_words(lines, line, form) if parsed is None else parsed)
        line += len(lines)
        if form.closed and not lines[-1].endswith(b"\n"):
            place = f"{form.file}, line {line - 1}"
            raise ValueError(f"{place}: the last line has no end; the file is cut off")
    return ParsedLines(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


def pairs_text(indices: Iterable[int], values: Iterable[float]) -> str:
    """Return all pairs as text, with a blank before each."""
    pairs = zip(indices, values, strict=True)
    return "".join(f" {index}:{number_text(value)}" for index, value in pairs)


def split_serials(lines: ParsedLines) -> tuple[np.ndarray, ParsedLines]:
    """Return i of the pairs ``0:i`` that all lines begin with, and the lines without them."""
    first = np.cumsum(lines.lengths) - lines.lengths
    numbers, lengths, indices, values = lines
    rest = (np.delete(array, first) for array in (indices, values))
    return values[first], ParsedLines(numbers, lengths - 1, *rest)


def _parse_block(block: bytes, form: LineFormat) -> ParsedLines | None:
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
    if (words < form.numbers).any():
        return None

    # Each further word has exactly one colon, behind digits only and before something.
    is_pair = np.arange(len(begin)) - np.repeat(first, words) >= form.numbers
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
    lengths = words - form.numbers
    if not np.isfinite(parsed).all() or not _in_order(indices, lengths, form):
        return None
    numbers = parsed[place[~is_pair]].reshape(-1, form.numbers)
    return ParsedLines(numbers, lengths.astype(np.int64), indices.astype(np.int32), values)


def _in_order(indices: np.ndarray, lengths: np.ndarray, form: LineFormat) -> bool:
    if form.serial and (lengths == 0).any():
        return False
    starts = (np.cumsum(lengths) - lengths)[lengths > 0]
    lowest = indices[starts]
    falls = np.flatnonzero(np.diff(indices) <= 0) + 1
    return bool(
        ((lowest == 0) if form.serial else (lowest >= 1)).all()
        and np.isin(falls, starts).all()
        and (indices <= form.largest).all()
    )


def _parse_words(lines: list[bytes], line: int, form: LineFormat) -> ParsedLines:
    """Parse word by word; raise ValueError with the number of a line that is wrong."""
    numbers: list[float] = []
    pairs: list[tuple[int, float]] = []
    lengths: list[int] = []
    for place, text in enumerate(lines, line):
        words = text.partition(b"#")[0].split()
        if not words:
            continue
        try:
            if len(words) < form.numbers or b":" in b"".join(words[: form.numbers]):
                raise ValueError(f"a line begins with the {form.what} ({form.numbers} expected)")
            numbers += [finite_number(word, form.what) for word in words[: form.numbers]]
            found = _pairs(words[form.numbers :], form)
        except ValueError as error:
            raise ValueError(f"{form.file}, line {place}: {error}") from None
        lengths.append(len(found))
        pairs += found
    return ParsedLines(
        np.array(numbers, np.float64).reshape(-1, form.numbers),
        np.array(lengths, np.int64),
        np.array([index for index, _ in pairs], np.int32),
        np.array([value for _, value in pairs], np.float64),
    )


def _pairs(words: list[bytes], form: LineFormat) -> list[tuple[int, float]]:
    pairs: list[tuple[int, float]] = []
    last = -1 if form.serial else 0
    for word in words:
        index_text, colon, value_text = word.partition(b":")
        if not colon:
            raise ValueError(
                f"{shown(word)} is no index:value pair, and the {form.what} "
                f"({form.numbers} expected) came before"
            )
        if not INDEX.fullmatch(index_text):
            raise ValueError(f"index {shown(index_text)} is not a whole number >= 1")
        index = int(index_text)
        if index == last == 0:
            raise ValueError(
                "index 0, but indices start at 1; 0:i belongs to kernel matrices (precomputed)"
            )
        if index <= last:
            raise ValueError(f"index {index} after index {last}, but indices must ascend")
        if index > form.largest:
            raise ValueError(f"index {index} is larger than {form.largest}, the largest allowed")
        pairs.append((index, finite_number(value_text, f"value of index {index}")))
        last = index
    if form.serial and (not pairs or pairs[0][0] != 0):
        raise ValueError("a row of a kernel matrix begins with 0:i, its serial number")
    return pairs


def finite_number(word: bytes, what: str) -> float:
    """Return the number that a word spells; errors call it `what`."""
    if not NUMBER.fullmatch(word):
        raise ValueError(f"{what} {shown(word)} is not a finite number")
    value = float(word)
    if not np.isfinite(value):
        raise ValueError(f"{what} {shown(word)} is too large")
    return value


def shown(word: bytes) -> str:
    """Quote the beginning of a word, whatever bytes it holds."""
    return repr(word[:40].decode("ascii", "backslashreplace"))
