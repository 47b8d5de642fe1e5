"""Losses of a decision value f(x), given the label y."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Float

from jsvm._typing import Array

Loss = Callable[[Any, Any], Any]


def zero_one(y: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return 1 where the sign of a decision value is not the label, else 0; has no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> [float(loss) for loss in zero_one(np.array([1.0, -1.0]), np.array([0.3, 0.3]))]
    [0.0, 1.0]
    """
    return (jnp.where(value > 0, 1.0, -1.0) != y).astype(value.dtype)


def squared_error(y: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return (f(x) − y)², a loss with a derivative.

    Examples
    --------
    >>> import numpy as np
    >>> float(squared_error(np.array([1.0]), np.array([0.5]))[0])
    0.25
    """
    return (value - y) ** 2
