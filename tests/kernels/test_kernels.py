"""One contract for every kernel: the matrix equals the specification, gradients are right."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import linalg
from scipy.sparse import csr_matrix

from jsvm import SVC, kernels, search
from jsvm.kernels import symmetric
from jsvm.numerics.arrays import widened

MATRIX = np.random.default_rng(5).normal(size=(7, 7))
SHAPE = np.array([[1.2, 0.3, -0.2], [0.3, 0.8, 0.1], [-0.2, 0.1, 0.6]])  # positive definite


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
    "general gaussian": kernels.GeneralGaussian(B=SHAPE),
    "general gaussian of any map": kernels.GeneralGaussian(B=np.triu(SHAPE, 1) - 0.5),
    "plummer": kernels.Plummer(rho=0.3, zeta=1.4),
    "sine": kernels.Sine(theta=1.3),
    "sum": kernels.RBF(gamma=0.6) + kernels.Linear(),
    "product": kernels.RBF(gamma=0.6) * kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0),
    "sum with sine": kernels.RBF(gamma=0.6) + kernels.Sine(theta=1.3),
    "product with sigmoid": kernels.RBF(gamma=0.6) * kernels.Sigmoid(gamma=0.3),
    "scaled": 2.5 * kernels.RBF(gamma=0.6),
    "normalized": kernels.Normalized(kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0)),
    "normalized linear": kernels.Normalized(kernels.Linear()),
    "function": kernels.Function(lambda X, Z: jnp.cos(X @ Z.T)),
    "function on the host": kernels.Function(plain_numpy_kernel, on_host=True),
    "precomputed": kernels.Precomputed(MATRIX),
}
INDEFINITE = (  # or not known to be positive semi-definite
    *("sigmoid", "sine", "sum with sine", "product with sigmoid"),
    *("function", "function on the host", "precomputed"),
)
POSITIVE = [name for name in KERNELS if name not in INDEFINITE]
SEES_ZEROS = (  # has a parameter for every feature, or may have
    *("ard", "general gaussian", "general gaussian of any map"),
    *("function", "function on the host", "precomputed"),
)
TRACEABLE = [name for name in KERNELS if name != "function on the host"]


def test_structures_of_different_kernels_are_different():
    """Or jit, now and then, takes the program of one kernel for that of another."""
    kinds = {str(s): s for s in map(jax.tree.structure, KERNELS.values())}.values()
    for a, b in itertools.combinations(kinds, 2):
        assert a != b


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
        assert k.ignores_zeros() == (name not in SEES_ZEROS)
        wide = widened(k, X)
        assert wide.shape[1] == (4 if k.ignores_zeros() else X.shape[1])
        np.testing.assert_allclose(k(wide), k(X), rtol=1e-12, atol=1e-14)

    def test_positive_kernels_say_so(self, name, rng):
        k = KERNELS[name]
        assert k.is_positive() == (name in POSITIVE)
        assert (2.0 * k).is_positive() == kernels.Normalized(k).is_positive() == k.is_positive()

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


@pytest.mark.usefixtures("x64")
class TestGeneralGaussian:
    def test_has_the_other_gaussian_kernels_as_special_cases(self, rng):
        X, Z = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
        radial = kernels.GeneralGaussian(np.sqrt(2 * 0.7) * np.eye(3))
        np.testing.assert_allclose(radial(X, Z), kernels.RBF(0.7)(X, Z), rtol=1e-13)
        gamma = np.array([0.5, 0.0, 1.5])
        diagonal = kernels.GeneralGaussian(np.diag(np.sqrt(2 * gamma)))
        np.testing.assert_allclose(diagonal(X, Z), kernels.ARD(gamma)(X, Z), rtol=1e-13)

    def test_rotations(self, rng):
        """Rotated points with the kernel turned along; and B rotated from the left, unseen."""
        X, R = rng.normal(size=(6, 3)), np.linalg.qr(rng.normal(size=(3, 3)))[0]
        K = kernels.GeneralGaussian(SHAPE)(X)
        turned = kernels.GeneralGaussian(R @ SHAPE @ R.T)(X @ R.T)
        np.testing.assert_allclose(turned, K, rtol=1e-12)
        np.testing.assert_allclose(kernels.GeneralGaussian(R @ SHAPE)(X), K, rtol=1e-12)

    @given(X=arrays(float, (5, 3), elements=st.floats(-2, 2)), shift=st.floats(-1e6, 1e6))
    def test_survives_an_offset(self, X, shift):
        k, moved = kernels.GeneralGaussian(SHAPE), X + shift
        np.testing.assert_allclose(k(moved), kernels.pairwise(k, moved, moved), atol=1e-12)
        P = k.prepare(moved)
        np.testing.assert_allclose(k.between(P, P), kernels.pairwise(k, moved, moved), atol=1e-12)

    def test_prepared_points_give_the_same_matrix(self, rng):
        k, X = kernels.GeneralGaussian(SHAPE), rng.normal(size=(9, 3)) + 5.0
        P, some = k.prepare(X), jnp.array([2, 7])
        assert all(leaf.shape[0] == 9 for leaf in jax.tree.leaves(P))
        rows = k.between(jax.tree.map(lambda leaf: leaf[some], P), P)
        np.testing.assert_allclose(rows, k(X)[some], atol=1e-14)

    def test_many_kernels_at_once(self, rng):
        X, many = rng.normal(size=(6, 3)), np.stack([SHAPE, np.eye(3), MATRIX[:3, :3]])
        batch = jax.vmap(lambda k: k(X))(kernels.GeneralGaussian(jnp.asarray(many)))
        for K, B in zip(batch, many, strict=True):
            np.testing.assert_allclose(K, kernels.GeneralGaussian(B)(X), rtol=1e-12)

    def test_follows_the_dtype_of_the_points(self, rng):
        X = rng.normal(size=(5, 3)).astype(np.float32)
        K = kernels.GeneralGaussian(SHAPE)(X)
        assert K.dtype == jnp.float32
        np.testing.assert_allclose(K, kernels.GeneralGaussian(SHAPE)(X.astype(float)), atol=1e-6)

    @pytest.mark.parametrize("c", [0.0, 0.4])
    def test_derivative_of_the_logarithm_of_b_where_all_its_eigenvalues_coincide(self, c, rng):
        X, W = rng.normal(size=(6, 3)), rng.normal(size=(6, 6))
        A = c * jnp.eye(3)

        def value(A):
            return jnp.sum(W * kernels.GeneralGaussian(symmetric.exponential(A))(X))

        gradient = jax.jit(jax.grad(value))(A)
        for i, j in np.ndindex(3, 3):
            h = jnp.zeros((3, 3)).at[i, j].add(1e-5)
            h = 0.5 * (h + h.T)
            central = float(value(A + h) - value(A - h)) / 2e-5
            np.testing.assert_allclose(gradient[i, j], central, rtol=1e-6, atol=1e-6)

    def test_derivative_equals_that_of_the_thesis(self, rng):
        """∂/∂a_ij at A = 0 of the kernel of exp(A) B exp(A) is −k · (x − z)ᵀ S B (x − z)."""
        x, z = rng.normal(size=(2, 3))

        def value(A):
            H = symmetric.exponential(A)
            return kernels.GeneralGaussian(H @ SHAPE @ H)(x[None, :], z[None, :])[0, 0]

        k, gradient = float(value(jnp.zeros((3, 3)))), jax.grad(value)(jnp.zeros((3, 3)))
        for i in range(3):
            for j in range(i + 1):
                E = np.zeros((3, 3))
                E[i, j] = E[j, i] = 1.0  # ∂A/∂a_ij with a_ij = a_ji
                S = E @ SHAPE + SHAPE @ E
                expected = -k * (x - z) @ S @ SHAPE @ (x - z)
                np.testing.assert_allclose(np.sum(gradient * E), expected, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_training_with_a_general_gaussian_is_training_on_mapped_points(whole, rng):
    """Also where a function of distances would use that pixels and counts are whole numbers."""
    X = rng.integers(0, 4, (80, 40)).astype(float) if whole else rng.normal(size=(80, 3)) + 10.0
    d = X.shape[1]
    A = rng.normal(size=(d, d))
    B = (np.eye(d) + 0.1 * (A + A.T)) / np.sqrt(d)
    y = X[:, 0] * X[:, 1] > np.median(X[:, 0] * X[:, 1])
    general, radial = kernels.GeneralGaussian(B), kernels.RBF(0.5)
    ours = SVC(kernel=general, C=3.0, tol=1e-8).fit(X, y)
    theirs = SVC(kernel=radial, C=3.0, tol=1e-8).fit(X @ B.T, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-6)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X @ B.T), atol=1e-6
    )
    scores = search.cross_validate(SVC(kernel=general), X, y, cv=3, C=[0.3, 3.0]).scores
    mapped = search.cross_validate(SVC(kernel=radial), X @ B.T, y, cv=3, C=[0.3, 3.0]).scores
    np.testing.assert_array_equal(scores, mapped)


def test_a_general_gaussian_says_that_it_takes_no_sparse_points(rng):
    X = csr_matrix(rng.integers(0, 2, (20, 3)).astype(float))
    y = np.arange(20) % 2
    machine = SVC(kernel=kernels.GeneralGaussian(SHAPE))
    with pytest.raises(ValueError, match=r"GeneralGaussian .* give a dense X"):
        machine.fit(X, y)
    with pytest.raises(ValueError, match=r"GeneralGaussian .* give a dense X"):
        search.cross_validate(machine, X, y, cv=2)


SPECTRA = {
    "distinct": [-1.0, 0.3, 0.9, 2.0],
    "all equal": [0.7, 0.7, 0.7, 0.7],
    "two equal": [-0.5, 0.4, 0.4, 1.0],
    "nearly equal": [0.2, 0.2 + 1e-9, 0.2 + 1e-5, 1.0],
    "far apart": [-30.0, -1.0, 0.0, 5.0],
}


def with_spectrum(values, rng):
    V = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
    return (V * values) @ V.T


@pytest.mark.usefixtures("x64")
class TestSymmetricFunctions:
    @pytest.mark.parametrize("name", SPECTRA)
    def test_values_are_those_of_scipy(self, name, rng):
        A = with_spectrum(SPECTRA[name], rng)
        B = np.asarray(symmetric.exponential(A))
        np.testing.assert_array_equal(B, B.T)
        np.testing.assert_allclose(B, linalg.expm(A), rtol=1e-12, atol=1e-13 * B.max())
        if name != "far apart":  # there the small eigenvalues are lost in the rounding of B
            L = np.asarray(symmetric.logarithm(B))
            np.testing.assert_allclose(L, linalg.logm(B), atol=1e-12)
            np.testing.assert_allclose(L, A, atol=1e-12)
            np.testing.assert_allclose(symmetric.exponential(L), B, rtol=1e-11, atol=1e-12)

    def test_the_antisymmetric_part_does_not_count(self, rng):
        A, N = with_spectrum(SPECTRA["distinct"], rng), np.triu(MATRIX[:4, :4], 1)
        for function, M in ((symmetric.exponential, A), (symmetric.logarithm, linalg.expm(A))):
            np.testing.assert_allclose(function(M + N - N.T), function(M), atol=1e-12)

    @pytest.mark.parametrize("name", SPECTRA)
    def test_derivative_of_the_exponential(self, name, rng):
        A, E = with_spectrum(SPECTRA[name], rng), rng.normal(size=(4, 4))
        E = E + E.T
        slope = jax.jvp(symmetric.exponential, (A,), (E,))[1]
        _, expected = linalg.expm_frechet(A, E)
        np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())

    @pytest.mark.parametrize("name", [name for name in SPECTRA if name != "far apart"])
    def test_derivative_of_the_logarithm_inverts_that_of_the_exponential(self, name, rng):
        A, E = jnp.asarray(with_spectrum(SPECTRA[name], rng)), rng.normal(size=(4, 4))
        there = jax.jvp(symmetric.exponential, (A,), (jnp.asarray(E + E.T),))
        back = jax.jvp(symmetric.logarithm, there[:1], there[1:])[1]
        np.testing.assert_allclose(back, E + E.T, rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("function", [symmetric.exponential, symmetric.logarithm])
    @pytest.mark.parametrize("values", [[2.0, 2.0, 2.0], [1.0, 1.0, 3.0], [0.5, 1.0, 3.0]])
    def test_derivatives_equal_central_differences(self, function, values, rng):
        A, E, W = jnp.asarray(with_spectrum(values, rng)), *rng.normal(size=(2, 3, 3))
        central = (function(A + 1e-5 * E) - function(A - 1e-5 * E)) / 2e-5
        forward = jax.jvp(function, (A,), (jnp.asarray(E),))[1]
        np.testing.assert_allclose(forward, central, rtol=1e-6, atol=1e-8)
        reverse = jax.jit(jax.grad(lambda A: jnp.sum(W * function(A))))(A)
        np.testing.assert_allclose(np.sum(reverse * E), np.sum(W * forward), rtol=1e-10)

    @pytest.mark.parametrize("function", [symmetric.exponential, symmetric.logarithm])
    def test_several_matrices_at_once(self, function, rng):
        many = jnp.stack([jnp.eye(3), jnp.asarray(with_spectrum([1.0, 2.0, 5.0], rng))])
        slopes = jax.vmap(jax.jacobian(function))(many)
        values = jax.jit(jax.vmap(function))(many)
        for A, value, slope in zip(many, values, slopes, strict=True):
            np.testing.assert_allclose(value, function(A), atol=1e-12)
            np.testing.assert_allclose(slope, jax.jacfwd(function)(A), atol=1e-12)

    def test_no_derivative_overflows_where_the_values_do_not(self):
        A = jnp.diag(jnp.array([-2000.0, 0.0, 3.0]))
        slope = jax.jvp(symmetric.exponential, (A,), (jnp.ones((3, 3)),))[1]
        np.testing.assert_allclose(slope[0, 1], 1.0 / 2000.0, rtol=1e-12)
        B = jnp.diag(jnp.array([1e-150, 1.0, 1e150]))
        slope = jax.jvp(symmetric.logarithm, (B,), (jnp.ones((3, 3)),))[1]
        np.testing.assert_allclose(slope[0, 1], 150.0 * np.log(10.0), rtol=1e-12)

    @pytest.mark.parametrize("function", [symmetric.exponential, symmetric.logarithm])
    def test_second_derivatives_exist_where_eigenvalues_are_distinct(self, function, rng):
        A, E = jnp.asarray(with_spectrum([0.5, 1.0, 3.0], rng)), rng.normal(size=(3, 3))

        def slope(t):
            return jax.jvp(function, (A + t * E,), (jnp.asarray(E),))[1]

        central = (slope(1e-5) - slope(-1e-5)) / 2e-5
        np.testing.assert_allclose(jax.jacfwd(slope)(0.0), central, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: kernels.Polynomial(degree=2.5)(X), "degree=2.5"),
        (lambda X: kernels.ARD(0.5)(X), "gamma must hold 3 widths"),
        (lambda X: kernels.ARD(np.ones(2))(X), "gamma must hold 3 widths"),
        (lambda X: kernels.GeneralGaussian(0.5)(X), "B must be a matrix of 3 rows"),
        (lambda X: kernels.GeneralGaussian(np.ones(3))(X), "B must be a matrix of 3 rows"),
        (lambda X: kernels.GeneralGaussian(np.ones((2, 3)))(X), r"one a feature, not \(2, 3\)"),
        (lambda X: kernels.GeneralGaussian(np.eye(2)).prepare(X), "B must be a matrix of 3 rows"),
        (lambda X: kernels.GeneralGaussian(np.eye(2)).pair(X[0], X[1]), "B must be a matrix"),
        (lambda X: symmetric.exponential(X), r"square, not of shape \(4, 3\)"),
        (lambda X: symmetric.logarithm(X[:1]), r"square, not of shape \(1, 3\)"),
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


@pytest.mark.parametrize("kernel", [kernels.Plummer(rho=0.01), kernels.Sine(theta=50.0)])
@pytest.mark.parametrize("features", [1, 3])
def test_a_kernel_of_the_distance_is_exact_for_points_close_to_each_other(kernel, features):
    draw = np.random.default_rng(0)
    points = 3.0 + np.logspace(-12, 0, 40)[:, None] * draw.normal(size=(40, features))
    distance = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
    exact = 1 / (distance + 0.01) if isinstance(kernel, kernels.Plummer) else np.sin(50 * distance)
    with jax.enable_x64(True):
        for computed in (kernel(points), kernel.between(*[kernel.prepare(points)] * 2)):
            np.testing.assert_allclose(np.asarray(computed), exact, rtol=1e-12, atol=1e-12)
