"""Hyperparameters as one vector without constraints.

A positive parameter enters as its logarithm, the matrix B of a general Gaussian kernel as the
entries of the symmetric matrix log B (004, section 10.1), any other number as it is, and C, if it
is searched for, as the last entry log C. A search keeps to a box around its start: where an
objective is flat nothing else would end a walk before the numbers overflow.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jsvm.kernels import GeneralGaussian, Kernel, Precomputed
from jsvm.kernels.symmetric import exponential
from jsvm.numerics.arrays import namespace

LARGEST_COST = 1e6  # and the smallest is one over it
WIDEST = float(np.log(1e8))  # of a search for the logarithm of a kernel parameter, to both sides

LOG, PLAIN, MATRIX, FIXED = "log", "plain", "matrix", "fixed"


@dataclass(frozen=True)
class Space:
    """What is searched: hashable, so that programs compiled for it are found again.

    Attributes
    ----------
    tree : PyTreeDef
        Of the kernel.
    classes : str
        Of the kernel and its parts; structures of different classes may compare equal.
    names : tuple of str
        Of the leaves of the kernel.
    kinds : tuple of str
        How each leaf enters: 'log', 'plain', 'matrix' or 'fixed'.
    shapes : tuple
        Of the leaves.
    with_cost : bool
        Whether C is searched for.
    """

    tree: Any
    classes: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    with_cost: bool

    @classmethod
    def of(cls, kernel: Kernel, C: Any = None) -> "Space":
        """Return the space of a kernel, with C unless that is None."""
        paths, tree = jax.tree_util.tree_flatten_with_path(kernel)
        matrices = _owned(kernel, GeneralGaussian, "B")
        given = _owned(kernel, Precomputed, "values")
        kinds = []
        for _, leaf in paths:
            if any(leaf is own for own in given) or not _is_real(leaf):
                kinds.append(FIXED)
            elif any(leaf is own for own in matrices):
                kinds.append(MATRIX)
            else:
                kinds.append(LOG if (np.asarray(leaf) > 0).all() else PLAIN)
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
        parts = zip(self.kinds, self.shapes, strict=True)
        return sum(_entries(kind, shape) for kind, shape in parts) + self.with_cost

    def encode(self, kernel: Kernel, C: Any = None) -> np.ndarray:
        """Return the vector of a kernel and C, in NumPy: nothing is compiled for it."""
        leaves = zip(self.kinds, jax.tree.leaves(kernel), strict=True)
        parts = [_encode(kind, np.asarray(leaf, float)) for kind, leaf in leaves if kind != FIXED]
        if self.with_cost:
            parts.append(np.log(np.asarray(C, float)).reshape(1))
        return np.concatenate(parts)

    def decode(self, theta: Any, kernel: Kernel) -> tuple[Kernel, Any]:
        """Return kernel and C of a vector; what is not searched for is that of a given kernel.

        Of several vectors, the rows of `theta`, the leaves have a leading axis.
        """
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
        """Return the vector with all widths multiplied: every γ by a factor, B by its root."""
        shifts = [
            np.log(factor) * _shift(kind, shape)
            for kind, shape in zip(self.kinds, self.shapes, strict=True)
        ]
        return theta + np.concatenate([*shifts, np.zeros(int(self.with_cost))])

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


def _owned(kernel: Any, kind: type, field: str) -> list[Any]:
    """Return the fields of all parts of a kernel that are of a class."""
    parts = jax.tree.leaves(kernel, is_leaf=lambda part: isinstance(part, kind))
    return [getattr(part, field) for part in parts if isinstance(part, kind)]


def _is_real(leaf: Any) -> bool:
    return np.issubdtype(np.asarray(leaf).dtype, np.floating)


def _entries(kind: str, shape: tuple[int, ...]) -> int:
    if kind == MATRIX:
        return shape[0] * (shape[0] + 1) // 2
    return 0 if kind == FIXED else int(np.prod(shape, dtype=int))


def _shift(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return what a factor of e changes in the entries of a leaf."""
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
