"""Where the kernel rows of a Hessian come from."""

from functools import partial
from typing import Any

import jax
import numpy as np

from jsvm.kernels.whole_numbers import are_whole, gains_from_whole
from jsvm.numerics.padding import cast, widened
from jsvm.problems import FromKernel
from jsvm.solvers.canonical import Layout
from jsvm.solvers.tiles.rows import MatrixSource, Source
from jsvm.solvers.tiles.rows import source_of as source_of_points


def source_of(hessian: Any, layout: Layout, dtype: np.dtype) -> Source:
    """Return the source of the kernel part of a Hessian, in its layout and in `dtype`."""
    if not isinstance(hessian, FromKernel):
        return MatrixSource(layout.square(hessian.matrix, dtype))
    kernel = jax.tree.map(partial(cast, dtype=dtype), hessian.kernel)
    X = widened(kernel, np.asarray(hessian.X))
    exact = gains_from_whole(kernel, X.shape[1], dtype) and are_whole(X)
    return source_of_points(kernel, layout.points(X, np.float32 if exact else dtype), dtype)
