"""Examples for the commands, from LIBSVM or CSV files."""

import argparse
import csv
from array import array
from pathlib import Path

import numpy as np

from jsvm.io.data import Matrix, dense_if_small, load_data


def read_examples(
    options: argparse.Namespace, *, precomputed: bool
) -> tuple[Matrix, np.ndarray | None]:
    """Return X and y of the file; X is an array unless it is large and sparse."""
    if is_csv(options):
        return read_csv(options.data, options.label)
    X, y = load_data(options.data, precomputed=precomputed, dense=precomputed)
    return (X if precomputed else dense_if_small(X)), y


def is_csv(options: argparse.Namespace) -> bool:
    """Tell whether the data file is read as CSV."""
    return options.format == "csv" or (
        options.format is None and options.data.suffix.lower() == ".csv"
    )


def read_csv(path: Path, label: str = "first") -> tuple[np.ndarray, np.ndarray | None]:
    """Read numbers separated by commas, with or without a header of names.

    `label` is the column of y: 'first', 'last', 'none' or a name in the header.
    """
    names: list[str] = []
    cells, lines = array("d"), array("q")
    with path.open(newline="", encoding="utf-8-sig") as file:  # a byte order mark is skipped
        reader = csv.reader(file, strict=True)
        try:
            for row in reader:
                if not row:
                    continue
                if not names:
                    names, is_header = _names(row)
                    if is_header:
                        continue
                cells.extend(_numbers(row, names))
                lines.append(reader.line_num)
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    if not lines:
        raise ValueError(f"{path} holds no examples")
    table = np.array(cells).reshape(len(lines), len(names))
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        raise ValueError(f"{path}, line {lines[int(np.argmin(finite))]}: NaN or infinity")
    if label == "none":
        return table, None
    column = _column(label, names, path)
    return np.delete(table, column, axis=1), table[:, column]


def _names(row: list[str]) -> tuple[list[str], bool]:
    """Return names of the columns, and whether the row is a header that holds them."""
    try:
        _numbers(row, row)
    except ValueError:
        if not any(_is_number(cell) for cell in row):
            return [cell.strip() for cell in row], True
    return [f"column {k}" for k in range(1, len(row) + 1)], False


def _numbers(row: list[str], names: list[str]) -> list[float]:
    if len(row) != len(names):
        raise ValueError(f"{len(row)} cells instead of {len(names)}")
    try:
        if "_" not in "".join(row):  # Python reads 1_0 as a number
            return [float(cell) for cell in row]
    except ValueError:
        pass
    wrong = next(k for k, cell in enumerate(row) if not _is_number(cell))
    raise ValueError(f"{names[wrong]}: {row[wrong][:40]!r} is not a number")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _column(label: str, names: list[str], path: Path) -> int:
    if label in names:
        return names.index(label)
    if label in ("first", "last"):
        return 0 if label == "first" else len(names) - 1
    raise ValueError(
        f"--label {label}: {path} has no such column, but {', '.join(names[:10])}; 'first' and "
        "'last' do without names"
    )
