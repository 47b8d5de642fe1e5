"""Small damages of files: bytes, pieces, lines, words, encodings.

Each mutation is a function of the bytes and of a generator of random numbers, and returns other
bytes (the same ones if there is nothing to damage). `checkpoint_parts` damages what is inside of a
checkpoint, which a change of its bytes cannot do: the archive has check sums.
"""

import io
import re
import zipfile
from collections.abc import Callable

import numpy as np

Draw = np.random.Generator
Mutation = Callable[[bytes, Draw], bytes]

LONG = 100_000  # bytes of a very long line, or word
WORDS = (
    *(b"nan", b"inf", b"-inf", b"1e999", b"-1e999", b"1e308", b"1e-320", b"-0", b"0", b"-1", b"1"),
    *(b"2147483647", b"2147483648", b"9223372036854775808", b"1" + b"0" * 400, b"1.5", b"0x10"),
    *(
        b"1_0",
        b"1:",
        b":1",
        b"0:1",
        b"1:1:1",
        b"-1:1",
        b"2147483647:1",
        b"",
        b"#",
        b"+",
        b"e",
        b",",
    ),
    *(
        b'"',
        b"'",
        b"\\",
        b"\xc2\xa0",
        "١".encode(),
        "é".encode("latin-1"),
        b"SV",
        b"nr_class",
        b"\t",
    ),
)
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7")
LINE_ENDS = (b"\r\n", b"\r", b"\n\n", b"\x0c\n", b"\x85", b" ", b"\x00")
WORD = re.compile(rb"[^\s:,]+")


def _piece(content: bytes, draw: Draw) -> slice:
    """Return a random piece, short ones more often."""
    begin = int(draw.integers(len(content) + 1))
    return slice(begin, begin + int(len(content) ** draw.random()))


def change_byte(content: bytes, draw: Draw) -> bytes:
    place = int(draw.integers(len(content) + 1))
    return content[:place] + bytes([draw.integers(256)]) + content[place + 1 :]


def delete_piece(content: bytes, draw: Draw) -> bytes:
    piece = _piece(content, draw)
    return content[: piece.start] + content[piece.stop :]


def repeat_piece(content: bytes, draw: Draw) -> bytes:
    piece = _piece(content, draw)
    return content[: piece.stop] + content[piece] + content[piece.stop :]


def move_piece(content: bytes, draw: Draw) -> bytes:
    """Copy a piece to some other place."""
    piece, place = _piece(content, draw), int(draw.integers(len(content) + 1))
    return content[:place] + content[piece] + content[place:]


def truncate(content: bytes, draw: Draw) -> bytes:
    return content[: int(draw.integers(len(content) + 1))]


def replace_word(content: bytes, draw: Draw) -> bytes:
    """Write something else in place of a number, a keyword, an index or a value."""
    words = list(WORD.finditer(content))
    if not words:
        return content
    word = words[int(draw.integers(len(words)))]
    return content[: word.start()] + WORDS[draw.integers(len(WORDS))] + content[word.end() :]


def extreme_number(content: bytes, draw: Draw) -> bytes:
    """Write a number of any size in place of a word."""
    words = list(WORD.finditer(content))
    if not words:
        return content
    word = words[int(draw.integers(len(words)))]
    number = b"%.3g" % (draw.choice([-1, 1]) * 10 ** draw.uniform(-320, 308))
    return content[: word.start()] + number + content[word.end() :]


def change_digit(content: bytes, draw: Draw) -> bytes:
    digits = [match.start() for match in re.finditer(rb"\d", content)]
    if not digits:
        return content
    place = digits[int(draw.integers(len(digits)))]
    return content[:place] + b"%d" % draw.integers(10) + content[place + 1 :]


def delete_line(content: bytes, draw: Draw) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        del lines[int(draw.integers(len(lines)))]
    return b"".join(lines)


def exchange_lines(content: bytes, draw: Draw) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        i, j = draw.integers(len(lines), size=2).tolist()
        lines[i], lines[j] = lines[j], lines[i]
    return b"".join(lines)


def long_line(content: bytes, draw: Draw) -> bytes:
    """Insert a word many times: one very long word, or one very long line."""
    word = WORDS[draw.integers(len(WORDS))] + (b" ", b"", b",")[draw.integers(3)]
    place = int(draw.integers(len(content) + 1))
    return content[:place] + word * (LONG // max(1, len(word))) + content[place:]


def insert_zeros(content: bytes, draw: Draw) -> bytes:
    place = int(draw.integers(len(content) + 1))
    return content[:place] + bytes(int(draw.integers(1, 20))) + content[place:]


def other_encoding(content: bytes, draw: Draw) -> bytes:
    return content.decode("latin-1").encode(ENCODINGS[draw.integers(len(ENCODINGS))])


def other_line_ends(content: bytes, draw: Draw) -> bytes:
    return content.replace(b"\n", LINE_ENDS[draw.integers(len(LINE_ENDS))])


BYTES: tuple[Mutation, ...] = (change_byte, delete_piece, repeat_piece, move_piece, truncate)
TEXT: tuple[Mutation, ...] = (
    *(*BYTES, replace_word, replace_word, extreme_number, change_digit, delete_line),
    *(exchange_lines, long_line, insert_zeros, other_encoding, other_line_ends),
)


def checkpoint_parts(content: bytes, draw: Draw) -> bytes:
    """Write an archive anew with other arrays, or other bytes of the arrays."""
    try:
        with np.load(io.BytesIO(content)) as archive:
            alpha, fingerprint = archive["alpha"].astype(float).reshape(-1), archive["fingerprint"]
    except Exception:  # it is damaged already
        return content
    if not len(alpha):
        return content
    values = np.array([np.nan, np.inf, -1.0, 1e308, 1e-320, 0.0, 10.0])
    some = alpha.copy()
    some[draw.integers(len(alpha), size=3)] = draw.choice(values, 3)
    with np.errstate(all="ignore"):
        arrays = (
            *(some, some * 1j, alpha[1:], alpha[:, None], alpha.astype(str), alpha.astype("f2")),
            *(alpha.astype(object), alpha[::-1], np.zeros(0), np.float64(1), alpha.astype(">f8")),
            *(np.zeros(2**20), alpha + 1e-3, 2 * alpha, alpha.astype("M8[s]"), alpha.view("V8")),
        )
    parts = {"alpha": arrays[draw.integers(len(arrays))], "fingerprint": fingerprint}
    if draw.random() < 0.2:
        names = (np.zeros(3), "", "0" * 32, fingerprint[None], np.array([fingerprint] * 2), b"\xff")
        parts["fingerprint"] = names[draw.integers(len(names))]
    if draw.random() < 0.1:
        del parts[str(draw.choice(list(parts)))]
    made, damaged = io.BytesIO(), io.BytesIO()
    np.savez_compressed(made, **parts)
    if draw.random() < 0.5:
        return made.getvalue()
    # The bytes of the arrays, with check sums that fit.
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(damaged, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, TEXT[draw.integers(len(TEXT))](old.read(name), draw))
    return damaged.getvalue()


ARCHIVE: tuple[Mutation, ...] = (*BYTES, insert_zeros, *[checkpoint_parts] * 6)
