"""Distances between rows by matrix products, with gradients that stay finite at zero."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Float, Real

from jsvm._typing import Array
from jsvm.kernels.base import Kernel, as_points
from jsvm.kernels.dot import inner_products

FEW_FEATURES = 4  # up to here distances are sums of squared differences
SAMPLE = 16  # about so many points are sampled, and the centre is their median


class Points(NamedTuple):
    """Points around a centre (or parts of them, see `whole_numbers`), and their squared lengths."""

    coordinates: Any
    squares: Array


class DistanceKernel(Kernel):
    """A kernel of the (weighted) squared distance: a concrete one gives :meth:`of_squares`."""

    blind_to_zeros, prepares_points = True, True

    def of_squares(self, squares: Float[Array, "..."]) -> Float[Array, "..."]:
        """Return the kernel as a function of squared distances."""
        raise NotImplementedError

    def weights(self, features: int) -> Float[Array, " d"] | None:
        """Return the weights of the coordinates; None where they are one."""
        return None

    def matrix(self, X: Real[Array, "n d"], Z: Real[Array, "m d"]) -> Float[Array, "n m"]:
        return self.of_squares(squared_distances(X, Z, self.weights(X.shape[1])))

    def diagonal(self, X: Real[Array, "n d"]) -> Float[Array, " n"]:
        X = as_points(X)
        return self.of_squares(jnp.zeros(X.shape[0], X.dtype))

    def prepare(self, X: Real[Array, "n d"]) -> Points:
        X = as_points(X)
        return _around(centre_of(X), X, self.weights(X.shape[1]))

    def between(self, P: Points, R: Points) -> Float[Array, "n m"]:
        if isinstance(P.coordinates, tuple):
            return self.of_squares(_squares_from(P, R, _exact_products(P, R)))
        return self.of_squares(_squares_between(P, R, self.weights(P.coordinates.shape[1])))

    def of_products(self, products: Any, left: Any, right: Any) -> Any:
        return self.of_squares(_expanded(left + right, products))

    def of_basis(self, values: Any) -> Any:
        return self.of_squares(values)


class SquaredDistance(DistanceKernel):
    """‖x − z‖²; no kernel by itself, but the one that others are functions of."""

    def of_squares(self, squares: Float[Array, "..."]) -> Float[Array, "..."]:
        return squares


DistanceKernel.basis = SquaredDistance()


def squared_distances(
    X: Float[Array, "n d"], Z: Float[Array, "m d"], weights: Float[Array, " d"] | None = None
) -> Float[Array, "n m"]:
    """Return Σ_d w_d (x_d − z_d)² for all pairs of rows, as ‖x‖² + ‖z‖² − 2⟨x, z⟩.

    The expansion cancels: its error is a few units in the last place of ‖x‖² + ‖z‖². So the points
    are moved to the centre of `Z` first, and a result below that error is replaced by zero: the
    square root of coincident points is then zero, too. In few dimensions, where points may be close
    to each other, the sum is taken as it stands: a kernel of ‖x − z‖ would have eight digits only.
    """
    if X.shape[1] <= FEW_FEATURES:
        return _sum_of_squares(X, Z, weights)
    centre = centre_of(Z)
    return _squares_between(_around(centre, X, weights), _around(centre, Z, weights), weights)


def centre_of(Z: Float[Array, "m d"]) -> Float[Array, " d"]:
    """Return the median of a sample of the points: a mean would follow a single outlier."""
    some = Z[:: max(1, Z.shape[0] // SAMPLE)]
    return lax.stop_gradient(jnp.sort(some, axis=0)[some.shape[0] // 2])


def _around(
    centre: Float[Array, " d"], X: Float[Array, "n d"], weights: Float[Array, " d"] | None
) -> Points:
    X = X - centre[None, :]
    return Points(X, jnp.sum(X * _weighted(X, weights), axis=1))


def _squares_between(P: Points, R: Points, weights: Float[Array, " d"] | None) -> Array:
    if P.coordinates.shape[1] <= FEW_FEATURES:
        return _sum_of_squares(P.coordinates, R.coordinates, weights)
    return _squares_from(P, R, inner_products(_weighted(P.coordinates, weights), R.coordinates))


def _sum_of_squares(
    X: Float[Array, "n d"], Z: Float[Array, "m d"], weights: Float[Array, " d"] | None
) -> Float[Array, "n m"]:
    total = jnp.zeros((X.shape[0], Z.shape[0]), jnp.result_type(X, Z))
    for d in range(X.shape[1]):
        squares = (X[:, d, None] - Z[None, :, d]) ** 2
        total = total + (squares if weights is None else weights[d].astype(total.dtype) * squares)
    return total


def _squares_from(P: Points, R: Points, products: Float[Array, "n m"]) -> Float[Array, "n m"]:
    return _expanded(P.squares[:, None] + R.squares[None, :], products)


def _expanded(norms: Float[Array, "..."], products: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return ‖x‖² + ‖z‖² − 2⟨x, z⟩, zero where that is below its rounding error."""
    squares = norms - 2.0 * products
    rounding = 8.0 * jnp.finfo(squares.dtype).eps * norms
    return jnp.where(squares > lax.stop_gradient(rounding), squares, 0.0)


def _exact_products(P: Points, R: Points) -> Float[Array, "n m"]:
    """Return ⟨x, z⟩ as the sum of the products of the parts, each exact in float32."""
    parts = zip(P.coordinates, R.coordinates, strict=True)
    products = [inner_products(X, Z).astype(P.squares.dtype) for X, Z in parts]
    return jnp.asarray(sum(products[1:], products[0]))


def _weighted(X: Float[Array, "n d"], weights: Float[Array, " d"] | None) -> Float[Array, "n d"]:
    return X if weights is None else X * weights.astype(X.dtype)[None, :]


def safe_root(squares: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return √s with derivative 0, not ∞, at s = 0."""
    # Both `where`s are needed: the derivative of the branch not taken must be finite too.
    positive = squares > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1.0)), 0.0)


def absolute_distances(X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """Return Σ_d |x_d − z_d| for all pairs of rows, one coordinate at a time."""
    start = jnp.zeros((X.shape[0], Z.shape[0]), jnp.result_type(X, Z))
    return lax.scan(_add_coordinate, start, (X.T, Z.T))[0]


# Not a closure: scan compiles again for every new function object.
def _add_coordinate(total: Float[Array, "n m"], columns: tuple) -> tuple[Float[Array, "n m"], None]:
    x, z = columns
    return total + jnp.abs(x[:, None] - z[None, :]), None
