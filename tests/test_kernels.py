"""One contract for every kernel: the matrix equals the specification, gradients are right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jsvm import kernels
from jsvm.solvers.prepare import widened

MATRIX = np.random.default_rng(5).normal(size=(7, 7))


def plain_numpy_kernel(X, Z):
    if not isinstance(X, np.ndarray):
        raise TypeError("this kernel wants NumPy arrays")
    return np.float64(1.0) + np.asarray([[float(np.dot(x, z)) for z in Z] for x in X])


KERNELS = {
    "linear": kernels.Linear(),
    "polynomial": kernels.Polynomial(degree=3, gamma=0.7, coef0=1.2),
    "polynomial of degree zero": kernels.Polynomial(degree=0, gamma=0.7, coef0=1.2),
    "sigmoid": kernels.Sigmoid(gamma=0.3, coef0=-0.2),
    "rbf": kernels.RBF(gamma=0.6),
    "laplacian": kernels.Laplacian(gamma=0.4),
    "ard": kernels.ARD(gamma=np.array([0.5, 0.0, 1.5])),
    "plummer": kernels.Plummer(rho=0.3, zeta=1.4),
    "sine": kernels.Sine(theta=1.3),
    "sum": kernels.RBF(gamma=0.6) + kernels.Linear(),
    "product": kernels.RBF(gamma=0.6) * kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0),
    "scaled": 2.5 * kernels.RBF(gamma=0.6),
    "normalized": kernels.Normalized(kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0)),
    "normalized linear": kernels.Normalized(kernels.Linear()),
    "function": kernels.Function(lambda X, Z: jnp.cos(X @ Z.T)),
    "function on the host": kernels.Function(plain_numpy_kernel, on_host=True),
    "precomputed": kernels.Precomputed(MATRIX),
}
POSITIVE = ("linear", "polynomial", "rbf", "laplacian", "ard", "sum", "product", "scaled")
TRACEABLE = [name for name in KERNELS if name != "function on the host"]


def points(name, rng, n):
    if name == "precomputed":
        return rng.integers(0, 7, (n, 1))
    X = rng.normal(size=(n, 3))
    X[-1] = X[0]  # coincident points
    return X


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", KERNELS)
class TestContract:
    def test_matrix_equals_the_specification(self, name, rng):
        k, X, Z = KERNELS[name], points(name, rng, 6), points(name, rng, 4)
        if name != "precomputed":
            Z[0] = X[2]
        expected = np.array([[float(k.pair(jnp.asarray(x), jnp.asarray(z))) for z in Z] for x in X])
        np.testing.assert_allclose(k(X, Z), expected, rtol=1e-9, atol=1e-12)
        assert k(X, Z).dtype == jnp.float64

    def test_diagonal_and_symmetry(self, name, rng):
        k, X = KERNELS[name], points(name, rng, 6)
        K = np.asarray(k(X))
        np.testing.assert_allclose(np.diagonal(K), k.diagonal(X), rtol=1e-9, atol=1e-12)
        if name != "precomputed":
            np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-14)

    def test_is_a_pytree_of_parameters(self, name, rng):
        k, X = KERNELS[name], points(name, rng, 5)
        leaves, structure = jax.tree.flatten(k)
        rebuilt = jax.tree.unflatten(structure, leaves)
        assert type(rebuilt) is type(k)
        np.testing.assert_array_equal(rebuilt(X), k(X))

    def test_works_under_jit(self, name, rng):
        k, X = KERNELS[name], points(name, rng, 5)
        compiled = jax.jit(lambda k, X: k(X))(k, jnp.asarray(X))
        np.testing.assert_allclose(compiled, k(X), rtol=1e-10, atol=1e-13)

    def test_ignores_zeros_tells_the_truth(self, name, rng):
        k, X = KERNELS[name], points(name, rng, 5)
        assert k.ignores_zeros() == (
            name not in ("ard", "function", "function on the host", "precomputed")
        )
        wide = widened(k, X)
        assert wide.shape[1] == (4 if k.ignores_zeros() else X.shape[1])
        np.testing.assert_allclose(k(wide), k(X), rtol=1e-12, atol=1e-14)

    def test_integers_are_points(self, name, rng):
        X = rng.integers(0, 3, (4, 1 if name == "precomputed" else 3))
        np.testing.assert_allclose(
            KERNELS[name](X), KERNELS[name](X.astype(float)), rtol=1e-12, atol=1e-14
        )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", TRACEABLE)
def test_pairwise_vectorises_the_specification(name, rng):
    k, X = KERNELS[name], points(name, rng, 5)
    np.testing.assert_allclose(k(X), kernels.pairwise(k, X, X), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", [n for n in TRACEABLE if jax.tree.leaves(KERNELS[n])])
def test_parameter_gradients_equal_central_differences(name, rng):
    k, X = KERNELS[name], points(name, rng, 5)
    W = rng.normal(size=(5, 5))

    def value(k):
        return jnp.sum(W * k(X))

    k = jax.tree.map(jnp.asarray, k)
    gradient = jax.grad(value)(k)
    for place, (leaf, slope) in enumerate(
        zip(jax.tree.leaves(k), jax.tree.leaves(gradient), strict=True)
    ):
        for index in np.ndindex(leaf.shape):
            if name == "ard" and leaf[index] == 0:
                continue  # at the edge of its range: the right-hand derivative is checked below

            def shifted(h, place=place, index=index):
                leaves, structure = jax.tree.flatten(k)
                leaves[place] = leaves[place].at[index].add(h)
                return float(value(jax.tree.unflatten(structure, leaves)))

            central = (shifted(1e-5) - shifted(-1e-5)) / 2e-5
            np.testing.assert_allclose(slope[index], central, rtol=2e-6, atol=1e-8)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", [n for n in TRACEABLE if n != "precomputed"])
def test_gradients_with_respect_to_points_are_finite_at_distance_zero(name, rng):
    X = points(name, rng, 5)
    X[1] = 0.0  # zero norm, too
    gradient = jax.grad(lambda X: jnp.sum(KERNELS[name](X, X) ** 2))(jnp.asarray(X))
    assert np.isfinite(gradient).all()
    both = jax.grad(lambda X: jnp.sum(kernels.pairwise(KERNELS[name], X, X) ** 2))(jnp.asarray(X))
    if name != "normalized linear":  # undefined at the zero vector: any finite value will do
        np.testing.assert_allclose(gradient, both, rtol=1e-6, atol=1e-8)


@pytest.mark.usefixtures("x64")
def test_a_width_of_zero_has_a_gradient(rng):
    X = rng.normal(size=(5, 3))
    gamma = jnp.array([0.5, 0.0, 1.5])
    slope = jax.grad(lambda g: jnp.sum(kernels.ARD(g)(X)))(gamma)[1]
    up = float(jnp.sum(kernels.ARD(gamma.at[1].set(1e-6))(X)) - jnp.sum(kernels.ARD(gamma)(X)))
    np.testing.assert_allclose(slope, up / 1e-6, rtol=1e-4)


@pytest.mark.usefixtures("x64")
@given(X=arrays(float, (8, 3), elements=st.floats(-3, 3)))
@pytest.mark.parametrize("name", POSITIVE)
def test_positive_kernels_have_no_negative_eigenvalue(name, X):
    values = np.linalg.eigvalsh(np.asarray(KERNELS[name](X)))
    assert values.min() >= -1e-9 * max(1.0, values.max())


@pytest.mark.usefixtures("x64")
@given(X=arrays(float, (5, 3), elements=st.floats(-2, 2)), shift=st.floats(-1e6, 1e6))
def test_distances_survive_an_offset(X, shift):
    moved = X + shift
    exact = ((moved[:, None, :] - moved[None, :, :]) ** 2).sum(-1)  # what the rounded points have
    np.testing.assert_allclose(kernels.RBF(0.5)(moved), np.exp(-0.5 * exact), atol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("outlier", [0, 3, 99])
def test_distances_survive_an_outlier(outlier, rng):
    X = rng.normal(size=(100, 2)) + 5.0
    X[outlier] = 1e8
    K = kernels.RBF(1.0)(X)
    np.testing.assert_allclose(K, kernels.pairwise(kernels.RBF(1.0), X, X), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: kernels.Polynomial(degree=2.5)(X), "degree=2.5"),
        (lambda X: kernels.ARD(0.5)(X), "gamma must hold 3 widths"),
        (lambda X: kernels.ARD(np.ones(2))(X), "gamma must hold 3 widths"),
        (lambda X: kernels.Precomputed(np.eye(2))(np.array([[5]])), "outside the given matrix"),
    ],
)
def test_mistakes_are_errors_and_name_the_argument(call, message, rng):
    with pytest.raises(ValueError, match=message):
        call(rng.normal(size=(4, 3)))


def test_a_kernel_times_a_word_is_no_kernel():
    with pytest.raises(TypeError):
        _ = kernels.Linear() * "a"


def test_float32_distances_survive_an_offset(rng):
    X = (rng.normal(size=(20, 3)) + 1000.0).astype(np.float32)
    exact = ((X[:, None, :].astype(float) - X[None, :, :]) ** 2).sum(-1)
    K = kernels.RBF(0.5)(X)
    assert K.dtype == jnp.float32
    np.testing.assert_allclose(K, np.exp(-0.5 * exact), atol=3e-6)


def test_normalized_kernel_is_zero_where_the_norm_is_zero():
    K = kernels.Normalized(kernels.Linear())(np.array([[0.0, 0.0], [1.0, 1.0]]))
    np.testing.assert_allclose(K, [[0.0, 0.0], [0.0, 1.0]], atol=1e-6)


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf, np.float64(-2.0)])
def test_scaling_by_a_bad_number_is_an_error(factor):
    with pytest.raises(ValueError, match="positive finite number"):
        _ = factor * kernels.RBF(0.5)


class TestResolve:
    X = np.array([[0.0, 0.0], [2.0, 2.0]])

    def test_gamma_scale_and_auto(self):
        def gamma(X, **arguments):
            return vars(kernels.resolve("rbf", X, **arguments))["gamma"]

        assert gamma(self.X) == 0.5
        assert gamma(self.X, gamma="auto") == 0.5
        assert gamma(3 * self.X) == pytest.approx(0.5 / 9)
        assert gamma(np.ones((3, 2))) == 1.0  # constant data
        assert gamma(self.X, gamma=np.float32(2.0)) == 2.0

    def test_names(self):
        poly = kernels.resolve("poly", self.X, gamma=1.0, degree=2, coef0=0.5)
        assert vars(poly) == {"degree": 2, "gamma": 1.0, "coef0": 0.5}
        for name, kind in (
            ("linear", kernels.Linear),
            ("sigmoid", kernels.Sigmoid),
            ("laplacian", kernels.Laplacian),
        ):
            assert isinstance(kernels.resolve(name, self.X), kind)

    def test_a_kernel_stays_itself(self):
        k = kernels.Sine(theta=2.0)
        assert kernels.resolve(k, self.X) is k

    def test_a_traceable_function_runs_in_jax(self):
        k = kernels.resolve(lambda X, Z: X @ Z.T, self.X)
        assert not k.runs_on_host()

    def test_another_function_runs_on_the_host(self):
        k = kernels.resolve(plain_numpy_kernel, self.X)
        assert k.runs_on_host()
        assert (k + kernels.Linear()).runs_on_host()
        np.testing.assert_allclose(k(self.X), 1.0 + self.X @ self.X.T)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"kernel": "rbff"}, "kernel='rbff'"),
            ({"kernel": 3}, "kernel=3"),
            ({"kernel": "rbf", "gamma": -1.0}, "gamma=-1.0"),
            ({"kernel": "rbf", "gamma": np.nan}, "gamma=nan"),
            ({"kernel": "rbf", "gamma": "huge"}, "gamma='huge'"),
            ({"kernel": "poly", "degree": 1.5}, "degree=1.5"),
            ({"kernel": "poly", "degree": -1}, "degree=-1"),
        ],
    )
    def test_errors_name_the_argument(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            kernels.resolve(X=self.X, **arguments)


def test_a_host_function_of_the_wrong_shape_is_an_error(rng):
    k = kernels.Function(lambda X, Z: np.zeros(3), on_host=True)
    with pytest.raises(ValueError, match="one row per row"):
        k(rng.normal(size=(4, 2)))
