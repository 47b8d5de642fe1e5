"""Checks of parameters and of training data, and arrays of other libraries.

scikit-learn's checks of a good array take longer than the fit of a small machine. Arrays that pass
these checks without doubt skip them; everything else, right or wrong, is left to scikit-learn.
"""

import numbers
from typing import Any

import jax
import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from jsvm.precision import working_dtype

FLOATS: Any = (np.float64, np.float32)


def are_plain(
    X: Any, *y: Any, ensure_min_samples: int = 1, y_numeric: bool = False, **others: Any
) -> bool:
    """Tell whether scikit-learn's checks would pass X, and y if it is given, unchanged.

    The keywords are those of ``validate_data``; an unknown one sends the data to scikit-learn.
    `y_numeric` makes no difference: only numeric targets are plain.
    """
    if type(X) is not np.ndarray or X.dtype not in FLOATS or X.ndim != 2 or others:
        return False
    if X.shape[0] < ensure_min_samples or X.size == 0 or not _is_finite(X):
        return False
    return all(_is_plain_target(target, X.shape[0]) for target in y)


def present_rows(X: Any, rows: np.ndarray, square: bool) -> Any:
    """Return some rows of X, and these columns too if it is a kernel matrix; all: X itself."""
    if len(rows) == X.shape[0]:
        return X
    return X[np.ix_(rows, rows)] if square else X[rows]


def from_device(X: Any, name: str = "X") -> Any:
    """Return an array of another library as NumPy's; what scikit-learn can read is unchanged."""
    if hasattr(X, "__dlpack__") and not hasattr(X, "__array__"):
        return np.from_dlpack(X, device="cpu")
    return on_host(unmasked(X, name))


def unmasked(values: Any, name: str) -> Any:
    """Return the values; raise ValueError if entries are masked: scikit-learn forgets the mask."""
    count = np.ma.count_masked(values) if isinstance(values, np.ma.MaskedArray) else 0
    if count:
        raise ValueError(
            f"{name} has {count} masked entries; fill them ({name}.filled(...)) or impute them "
            "(sklearn.impute), or leave these examples out"
        )
    return values


def on_host(leaf: Any) -> Any:
    """Return a JAX array as NumPy's, and anything else unchanged."""
    return jax.device_get(leaf) if isinstance(leaf, jax.Array) else leaf


def _is_plain_target(y: Any, n: int) -> bool:
    plain = type(y) is np.ndarray and y.shape == (n,) and y.dtype.kind in "iuf"
    return plain and (y.dtype.kind != "f" or _is_finite(y))


def _is_finite(values: np.ndarray) -> bool:
    """Tell whether the sum is finite: then all values are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def encoded(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, sorted, and every label as the number of its class."""
    array = np.asarray(y)
    if _are_plain(array):
        classes, codes = _counted(array)
    else:
        check_classification_targets(y)  # raises for what is no label
        classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "y holds one class only: The number of classes has to be greater than one; "
            f"got {len(classes)} class"
        )
    return classes, codes


def _are_plain(y: np.ndarray) -> bool:
    """Tell whether these are labels without doubt: few whole numbers."""
    if y.ndim != 1 or y.dtype.kind not in "iuf":
        return False
    low, high = y.min(initial=0), y.max(initial=0)
    return bool(float(high) - float(low) < len(y) // 2 and (np.rint(y) == y).all())


def _counted(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same as ``numpy.unique`` with its inverse, without sorting."""
    offsets = y - y.min()
    if y.dtype.kind != "f":  # a difference of short integers may wrap around
        offsets = offsets.view(f"u{y.itemsize}")
    numbers = offsets.astype(np.int64)
    labels = np.empty(numbers.max() + 1, y.dtype)
    labels[numbers] = y
    present = np.bincount(numbers) > 0
    return labels[present], (np.cumsum(present) - 1)[numbers]


def class_factors(
    class_weight: Any, classes: np.ndarray, y: Any, codes: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return the factor of the weight of every example; 'balanced' counts with the weights."""
    if class_weight is None:
        return np.ones(len(codes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(codes, weights=weight)  # scikit-learn 1.6 takes no weights
        values = counts.sum() / (len(classes) * counts)
    else:
        values = compute_class_weight(class_weight, classes=classes, y=y)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"class_weight={class_weight!r} must be finite numbers >= 0")
    return values[codes]


def check_presence(classes: np.ndarray, codes: np.ndarray) -> None:
    """Raise ValueError if a class has no example left."""
    absent = np.flatnonzero(np.bincount(codes, minlength=len(classes)) == 0)
    if len(absent):
        raise ValueError(
            f"sample_weight or class_weight is zero on all of class {classes[absent[0]]!r}"
        )


def against_rest(codes: np.ndarray, classes: int) -> np.ndarray:
    """Return targets ±1: of two classes one row, the second is +1; else each against the rest."""
    chosen = np.arange(1, 2) if classes == 2 else np.arange(classes)
    return np.where(codes[None, :] == chosen[:, None], 1.0, -1.0)


def fraction(name: str, value: Any) -> float:
    """Return a number in (0, 1]; raise ValueError otherwise."""
    if not _is_number(value) or not 0 < float(value) <= 1:
        raise ValueError(f"{name}={value!r} must be in (0, 1]")
    return float(value)


def at_least(name: str, value: Any, least: float) -> float:
    """Return a finite number not below `least`; raise ValueError otherwise."""
    if not _is_number(value) or not least <= float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a finite number >= {least}")
    return float(value)


def costs(C: Any, n: int) -> np.ndarray:
    """Return one cost an example from one number or n of them; raise ValueError if they are bad."""
    if np.ndim(C) == 0:
        return np.full(n, positive_cost(C))
    values = np.asarray(C, float)
    if values.shape != (n,) or not (values > 0).all():
        raise ValueError(f"C must hold {n} positive numbers, one an example, or be one number")
    return values


def weighted(C: Any, weight: np.ndarray, dtype: Any) -> np.ndarray:
    """Return C times the weights, all positive; raise ValueError if XLA takes one for zero."""
    products, least = C * weight, np.finfo(working_dtype(dtype)).tiny
    if products.min() < least:
        raise ValueError(
            f"C times the weight of an example is {products.min()}, but must be at least "
            f"{least:.3g}, or XLA takes it for zero; raise C or the weights"
        )
    return products


def positive_cost(C: Any) -> float:
    """Return C as a float; raise ValueError if it is no positive number."""
    if not _is_number(C) or not float(C) > 0:
        raise ValueError(f"C={C!r} must be a positive number (np.inf for a hard margin)")
    return float(C)


def whole_number(name: str, value: Any, least: int) -> int:
    """Return a whole number not below `least`; raise ValueError otherwise."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number >= {least}")
    return int(value)


def one_of(name: str, value: Any, known: tuple[Any, ...]) -> Any:
    """Return one of the known values; raise ValueError otherwise."""
    if not isinstance(value, str | None) or value not in known:
        raise ValueError(f"{name}={value!r} must be one of {known}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
