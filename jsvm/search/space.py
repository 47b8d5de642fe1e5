"""Hyperparameters as one vector without constraints.

A positive parameter enters as its logarithm, the matrix B of a general Gaussian kernel as the
entries of the symmetric matrix log B (Glasmachers 2008, section 10.1), any other number unchanged,
and C, if it is searched for, as the last entry log C. A kernel declares what is not a plain number
(`Kernel.SEARCHED_AS`). A search stays in a box around its start: where an objective is flat,
nothing else would stop it before the numbers overflow.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jsvm.kernels import Kernel
from jsvm.kernels.symmetric import exponential
from jsvm.numerics.arrays import namespace

LARGEST_COST = 1e6  # the box of C ends here and at its inverse; beyond, machines hardly change
WIDEST = float(np.log(1e8))  # half the width of the box of a kernel parameter, as a logarithm

LOG, PLAIN, MATRIX, FIXED = "log", "plain", "matrix", "fixed"  # how a leaf enters


@dataclass(frozen=True)
class Space:
    """The hyperparameters of a kernel, and C; hashable: compiled programs are found again."""

    tree: Any  # of the kernel
    classes: str  # of the kernel and its parts; trees of different classes may compare equal
    names: tuple[str, ...]  # of the leaves of the kernel
    kinds: tuple[str, ...]  # how each leaf enters: 'log', 'plain', 'matrix' or 'fixed'
    shapes: tuple[tuple[int, ...], ...]  # of the leaves
    with_cost: bool  # whether C is searched for

    @classmethod
    def of(cls, kernel: Kernel, C: Any = None) -> "Space":
        """Return the space of a kernel, with C unless that is None."""
        paths, tree = jax.tree_util.tree_flatten_with_path(kernel)
        declared = _declared(kernel)
        kinds = [_kind(leaf, declared) for _, leaf in paths]
        names = tuple(jax.tree_util.keystr(path).lstrip(".") for path, _ in paths)
        shapes = tuple(np.shape(leaf) for _, leaf in paths)
        space = cls(tree, str(tree), names, tuple(kinds), shapes, C is not None)
        if not space.size:
            raise ValueError(
                f"kernel={kernel!r} has no parameter to search for; give C, or another kernel"
            )
        return space

    @property
    def size(self) -> int:
        """Number of entries of the vector."""
        return sum(map(_entries, self.kinds, self.shapes)) + self.with_cost

    def encode(self, kernel: Kernel, C: Any = None) -> np.ndarray:
        """Return the vector of a kernel and C, computed in NumPy: nothing is compiled."""
        leaves = zip(self.kinds, jax.tree.leaves(kernel), strict=True)
        parts = [_encode(kind, np.asarray(leaf, float)) for kind, leaf in leaves if kind != FIXED]
        if self.with_cost:
            parts.append(np.log(np.asarray(C, float)).reshape(1))
        return np.concatenate(parts)

    def decode(self, theta: Any, kernel: Kernel) -> tuple[Kernel, Any]:
        """Return kernel and C of a vector, or of several rows; fixed leaves are those given."""
        xp, lead = namespace(theta), theta.shape[:-1]
        leaves, begin = [], 0
        for kind, shape, own in zip(self.kinds, self.shapes, jax.tree.leaves(kernel), strict=True):
            end = begin + _entries(kind, shape)
            part = theta[..., begin:end]
            leaves.append(own if kind == FIXED else _decode(xp, kind, part, (*lead, *shape)))
            begin = end
        C = xp.exp(theta[..., -1]) if self.with_cost else None
        return jax.tree.unflatten(self.tree, leaves), C

    def scaled(self, theta: np.ndarray, factor: float) -> np.ndarray:
        """Return the vector with every positive parameter multiplied by a factor, B by its root."""
        shifts = list(map(_shift, self.kinds, self.shapes))
        return theta + np.log(factor) * np.concatenate([*shifts, np.zeros(int(self.with_cost))])

    def limits(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the box around a start."""
        low, high = theta - WIDEST, theta + WIDEST
        if self.with_cost:
            edge = float(np.log(LARGEST_COST))
            low[-1], high[-1] = min(-edge, theta[-1]), max(edge, theta[-1])
        return low, high

    def history(self, thetas: np.ndarray, kernel: Kernel) -> dict[str, np.ndarray]:
        """Return the hyperparameters of many vectors by their names, along the first axis."""
        kernels, costs = self.decode(thetas, kernel)
        leaves = zip(self.names, self.kinds, jax.tree.leaves(kernels), strict=True)
        found = {name: np.asarray(leaf) for name, kind, leaf in leaves if kind != FIXED}
        return found | ({"C": np.asarray(costs)} if self.with_cost else {})


def _declared(kernel: Kernel) -> list[tuple[Any, str]]:
    """Return the fields whose kind is declared, of all parts of a kernel, with their kinds."""

    def declares(part: Any) -> bool:
        return isinstance(part, Kernel) and bool(part.SEARCHED_AS)

    parts = filter(declares, jax.tree.leaves(kernel, is_leaf=declares))
    return [(getattr(p, name), kind) for p in parts for name, kind in p.SEARCHED_AS.items()]


def _kind(leaf: Any, declared: list[tuple[Any, str]]) -> str:
    if not np.issubdtype(np.asarray(leaf).dtype, np.floating):
        return FIXED
    plain = LOG if (np.asarray(leaf) > 0).all() else PLAIN
    return next((kind for own, kind in declared if own is leaf), plain)


def _entries(kind: str, shape: tuple[int, ...]) -> int:
    if kind == MATRIX:
        return shape[0] * (shape[0] + 1) // 2
    return 0 if kind == FIXED else int(np.prod(shape, dtype=int))


def _shift(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return what a factor of e adds to the entries of a leaf."""
    if kind == MATRIX:
        return 0.5 * np.eye(shape[0])[np.triu_indices(shape[0])]
    return np.full(_entries(kind, shape), 1.0 if kind == LOG else 0.0)


def _encode(kind: str, leaf: np.ndarray) -> np.ndarray:
    if kind == MATRIX:
        values, V = np.linalg.eigh(0.5 * (leaf + leaf.T))
        return ((V * np.log(values)) @ V.T)[np.triu_indices(len(leaf))]
    return (np.log(leaf) if kind == LOG else leaf).reshape(-1)


def _decode(xp: Any, kind: str, values: Any, shape: tuple[int, ...]) -> Any:
    if kind == MATRIX:
        return _exponential(xp, values, shape)
    return (xp.exp(values) if kind == LOG else values).reshape(shape)


def _exponential(xp: Any, values: Any, shape: tuple[int, ...]) -> Any:
    """Return exp(A) of the symmetric matrix with these entries in and above its diagonal."""
    d = shape[-1]
    place = np.zeros((d, d), int)
    place[np.triu_indices(d)] = np.arange(d * (d + 1) // 2)
    A = values[..., np.maximum(place, place.T)]
    if xp is np:
        spectrum, V = np.linalg.eigh(A)
        return (V * np.exp(spectrum)[..., None, :]) @ np.swapaxes(V, -1, -2)
    return exponential(A) if A.ndim == 2 else jax.vmap(exponential)(A)
