"""The machines of fitted estimators, prepared for prediction once and kept as long as they fit."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from jsvm.evaluate import Predictor
from jsvm.machine import Machine
from jsvm.precision import default_device


class Kept(NamedTuple):
    """Predictors by dtype and device, and the fitted attributes that they were made from."""

    objects: Sequence[Any]
    numbers: Sequence[Any]
    predictors: dict[Any, Predictor]

    def is_of(self, objects: Sequence[Any], numbers: Sequence[Any]) -> bool:
        """Tell whether the attributes are the same objects and numbers still."""
        same = all(a is b for a, b in zip(self.objects, objects, strict=True))
        return same and all(map(np.array_equal, self.numbers, numbers))


class Predictors:
    """A predictor for every estimator, dtype and device.

    They are kept outside of the estimators: scikit-learn asks that a prediction leaves an estimator
    unchanged, and they are not to be pickled. They are deleted with their estimator. Users may
    assign fitted attributes, so these are compared at every call: kernel and points by identity,
    numbers by value.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: WeakKeyDictionary[Any, Kept] = WeakKeyDictionary()

    def of(
        self,
        owner: Any,
        objects: Sequence[Any],
        numbers: Sequence[Any],
        dtype: np.dtype,
        machine: Callable[[], Machine],
    ) -> Predictor:
        """Return the predictor of `owner`, made of `machine()` if an attribute has changed."""
        key = dtype, default_device()
        with self._lock:
            kept = self._kept.get(owner)
            if kept is None or not kept.is_of(objects, numbers):
                kept = self._kept[owner] = Kept(objects, [np.array(v) for v in numbers], {})
            if key not in kept.predictors:
                kept.predictors[key] = Predictor(machine(), dtype)
            return kept.predictors[key]


PREDICTORS = Predictors()
