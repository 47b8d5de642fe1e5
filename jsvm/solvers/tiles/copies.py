"""Copies of an example are one variable with a wider box.

Where k examples agree in everything (features, linear term, bounds, groups and ridge), Q and l see
only the sum a of their variables. So one variable does for them, with k times their bounds:

    Σ ½ r α_i² with Σα_i = a  is least for α_i = a/k:  ½ (r/k) a².

Without ridge any division of a is as good as any other; copies are filled one after the other,
which gives the fewest support vectors. Counts, indicators and categories are full of copies.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jsvm.numerics.arrays import equal_rows
from jsvm.problems import FromKernel, QuadraticProgram, Repeated
from jsvm.solvers.canonical import innermost
from jsvm.solvers.tuning import Tuning


@dataclass(frozen=True)
class Copies:
    """One example of every kind (`first`), and the kind of every example of the program."""

    program: QuadraticProgram
    first: np.ndarray
    kind: np.ndarray

    def merged(self) -> QuadraticProgram:
        """Return the program with one example of every kind."""
        inner, p = innermost(self.program.hessian), self.program
        count = np.bincount(self.kind)
        ridge = np.broadcast_to(np.asarray(inner.ridge), inner.size)[self.first] / count
        hessian: Any = FromKernel(inner.kernel, np.asarray(inner.X)[self.first], ridge)
        for _ in range((p.size // inner.size).bit_length() - 1):
            hessian = Repeated(hessian)
        return replace(
            p,
            hessian=hessian,
            linear=self._of_first(p.linear).reshape(-1),
            lower=(self._of_first(p.lower) * count).reshape(-1),
            upper=(self._of_first(p.upper) * count).reshape(-1),
            groups=self._of_first(p.groups).reshape(-1),
        )

    def together(self, alpha: np.ndarray) -> np.ndarray:
        """Turn a point of the program into one of the merged program."""
        rows = alpha.reshape(-1, len(self.kind))
        return np.concatenate([np.bincount(self.kind, row) for row in rows])

    def apart(self, alpha: np.ndarray) -> np.ndarray:
        """Turn a point of the merged program into one of the program."""
        lower, upper = self._of_first(self.program.lower), self._of_first(self.program.upper)
        count = np.bincount(self.kind)
        sums = np.asarray(alpha, float).reshape(lower.shape)
        rest = np.clip(0.0, lower, upper)  # the value of a copy that gets nothing
        excess = sums - count * rest
        amount = np.abs(excess)
        room = np.minimum(np.where(excess > 0, upper - rest, rest - lower), amount)
        share = self._shares(amount, room)
        each = (rest + np.sign(excess) * room)[:, self.kind]  # what is full is at its bound exactly
        full = share >= room[:, self.kind]
        each = np.where(full, each, (rest[:, self.kind] + np.sign(excess)[:, self.kind] * share))
        return each.reshape(-1)

    def _shares(self, amount: np.ndarray, room: np.ndarray) -> np.ndarray:
        """Divide an amount among the copies of every kind."""
        ridge = np.broadcast_to(np.asarray(innermost(self.program.hessian).ridge), len(self.kind))
        equal = (amount / np.bincount(self.kind))[:, self.kind]
        amount, room = amount[:, self.kind], room[:, self.kind]
        left = amount - _numbers(self.kind) * room
        # Rounding would leave support vectors of no weight, or some that just miss their bound.
        dust = 8 * np.finfo(float).eps * amount
        left = np.where(left > dust, left, 0.0)
        return np.where(ridge > 0, equal, np.where(left >= room - dust, room, left))

    def _of_first(self, values: Any) -> np.ndarray:
        """Return what one example of every kind has, one row for each of its variables."""
        return np.asarray(values).reshape(-1, len(self.kind))[:, self.first]


def copies_in(program: QuadraticProgram, tuning: Tuning) -> Copies | None:
    """Return the copies in a canonical program; None if they are too few to be worth merging."""
    inner = innermost(program.hessian)
    if not isinstance(inner, FromKernel):
        return None
    X, n = np.asarray(inner.X), inner.size
    fewest = max(tuning.fewest_copied_entries / n, tuning.smallest_copied_share * n)
    if equal_rows(X, fewest=fewest) is None:  # most data have no copies, and the rest takes time
        return None
    vectors = program.linear, program.lower, program.upper, program.groups
    others = [np.asarray(v, float).reshape(-1, n) for v in vectors]
    others.append(np.broadcast_to(np.asarray(inner.ridge, float), (1, n)))
    found = equal_rows(X, np.concatenate(others).T, fewest=fewest)
    return None if found is None else Copies(program, *found)


def _numbers(kind: np.ndarray) -> np.ndarray:
    """Number the copies of every kind from zero."""
    order = np.argsort(kind, kind="stable")
    begin = np.concatenate([[0], np.cumsum(np.bincount(kind))[:-1]])
    numbers = np.empty(len(kind), np.int64)
    numbers[order] = np.arange(len(kind)) - begin[kind[order]]
    return numbers
