"""The Potential SVM as a quadratic program, and the certificate of its solutions.

    minimise  ½αᵀKᵀKα − yᵀKα + ε‖α‖₁   subject to  −C ≤ α ≤ C

for any L × P matrix K (Knebel et al. 2008, eq. 19; Hochreiter & Obermayer 2004, eq. 31, 41). The
predictor is Kα + b with b the mean of y (Hochreiter & Obermayer 2004, eq. 23).

**Duality.** For any v in the space of the examples ½‖Kα‖² ≥ vᵀKα − ½‖v‖², hence f(α) ≥ −P(v) with

    P(v) = ½‖v‖² + Σ_j max over −C ≤ a ≤ C of (g_j a − ε|a|),   g = Kᵀ(y − v).

At v = Kα the sum is C Σ_j max(0, |G_j| − ε), the slacks of the primal problem (Knebel et al. 2008,
eq. 1). With C = ∞ these have to vanish, and v = y − s(y − Kα) with s ≤ 1 makes |sG_j| ≤ ε.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Real

from jsvm._typing import Array, Leaf, Number, Scalar, Vector, pytree
from jsvm.numerics.arrays import in_full_precision, namespace
from jsvm.precision import is_traced
from jsvm.problems.certificate import Certificate
from jsvm.problems.hessian import Dense, Hessian
from jsvm.problems.machines import check, cost, targets
from jsvm.problems.matrix_data import DenseMatrix, MatrixData, as_matrix_data
from jsvm.problems.program import QuadraticProgram
from jsvm.programs import program

Outputs = Float[Array, " l"]
Box = tuple[Vector, Vector, Scalar]  # L, U and ε
CONSTRAINT_ULPS = 1e3  # units of rounding within which a constraint holds


@pytree
class Normal(Hessian):
    """Q = KᵀK of matrix data, never formed as a whole; with the targets y.

    Examples
    --------
    >>> from jsvm.problems import DenseMatrix
    >>> Normal(DenseMatrix(np.ones((2, 3))), np.ones(3)).diagonal().tolist()
    [3.0, 3.0]
    """

    data: Leaf
    target: Leaf

    @property
    def size(self) -> int:
        return self.data.shape[1]

    def rows(self, indices: Int[Array, " q"]) -> Float[Array, "q n"]:
        return self.data.correlations(jnp.asarray(self.data.objects(indices)).T).T

    def diagonal(self) -> Vector:
        return jnp.sum(jnp.asarray(self.data.all_objects()) ** 2, axis=1)

    def matvec(self, v: Vector) -> Vector:
        return self.data.correlations(self.output(v))

    def output(self, alpha: Vector) -> Float[Array, " l"]:
        """Return Kα; only the values of the objects with α ≠ 0 are needed, if α is concrete."""
        if is_traced(alpha, self.data):
            return jnp.matmul(alpha, jnp.asarray(self.data.all_objects()))
        used = np.flatnonzero(np.asarray(alpha))
        values = jnp.asarray(self.data.objects(used))
        return jnp.matmul(jnp.asarray(alpha)[used], values)

    def ridge_vector(self) -> Vector:
        return jnp.zeros(self.size, jnp.result_type(self.target))

    def dense(self) -> Dense:
        return Dense(self.rows(np.arange(self.size)))


def psvm(K: Any, y: Real[Array, " l"], C: Scalar, epsilon: Scalar) -> QuadraticProgram:
    """Potential SVM, ½αᵀKᵀKα − yᵀKα + ε‖α‖₁ with |α_j| ≤ C (Knebel et al. 2008, eq. 19).

    K is any matrix; :func:`normalised` gives its columns mean zero and unit scale, as
    the papers ask for. The ``bias`` of a solution is the mean of y.

    Parameters
    ----------
    K : array of shape (L, P), (kernel, X), (kernel, X, Z) or MatrixData
    y : array of shape (L,)
    C : positive number or array of shape (P,); may be infinite
    epsilon : number >= 0

    Examples
    --------
    >>> import jsvm
    >>> s = jsvm.solve(psvm(np.eye(3)[:, :2], np.array([2.0, -3.0, 1.0]), 2.0, 0.5))
    >>> [round(float(a), 6) for a in s.alpha], float(s.bias)
    ([1.5, -2.0], 0.0)
    """
    data = as_matrix_data(K)
    length, count = data.shape
    if np.shape(y) != (length,):
        raise ValueError(f"y must hold {length} targets, one for each row of K, not {np.shape(y)}")
    y = targets(y)
    C = cost(C, count, "no bound")
    check(epsilon, "epsilon", lambda value: 0 <= float(value) < np.inf, "a finite number >= 0")
    linear = _linear(data, y)
    upper = 0.0 * linear + C
    return QuadraticProgram(Normal(data, y), linear, -upper, upper, l1=epsilon)


@program
def primal_objective(target: Outputs, output: Outputs, gradient: Vector, box: Box) -> Number:
    """Return P(v) from Kα and its G; v is Kα, or near it where a bound is infinite."""
    lower, upper, epsilon = box
    unbounded = (upper == jnp.inf) | (lower == -jnp.inf)
    worst = jnp.max(jnp.where(unbounded, jnp.abs(gradient), 0.0))
    unit = jnp.finfo(output.dtype).eps * jnp.max(jnp.abs(target)) * jnp.sqrt(target.shape[0])
    shrink = worst > epsilon + CONSTRAINT_ULPS * unit
    s = jnp.where(shrink, epsilon / jnp.where(shrink, worst, 1.0), 1.0)
    v = target - s * (target - output)
    g = s * gradient
    up = jnp.maximum(g - epsilon, 0.0)
    down = jnp.maximum(-g - epsilon, 0.0)
    slack = jnp.where(unbounded, 0.0, up * jnp.where(unbounded, 0.0, upper))
    slack = slack - jnp.where(unbounded, 0.0, down * jnp.where(unbounded, 0.0, lower))
    return 0.5 * jnp.dot(v, v) + jnp.sum(slack)


def violations(
    alpha: Vector, gradient: Vector, lower: Vector, upper: Vector, epsilon: Scalar
) -> Vector:
    """Return d_j of every variable (Knebel et al. 2008, eq. 25); −∞ where the box has no width."""
    xp: Any = namespace(alpha, gradient)
    up = gradient - xp.where(alpha >= 0, epsilon, -epsilon)  # what is gained by going up
    down = -gradient + xp.where(alpha > 0, epsilon, -epsilon)
    return xp.maximum(xp.where(alpha < upper, up, -xp.inf), xp.where(alpha > lower, down, -xp.inf))


def objective(target: Array, output: Array, alpha: Array, epsilon: Scalar) -> Any:
    """Return ½‖Kα‖² − yᵀKα + ε‖α‖₁ from the output Kα."""
    return (output * (0.5 * output - target)).sum() + epsilon * abs(alpha).sum()


def certify_potential(
    target: Outputs, output: Outputs, alpha: Vector, gradient: Vector, box: Box
) -> Certificate:
    """Return the certificate of a point with its fresh output and gradient."""
    xp: Any = namespace(alpha, gradient)
    return Certificate(
        objective=objective(target, output, alpha, box[2]),
        primal_objective=primal_objective(target, output, gradient, box),
        multipliers=xp.zeros(0, alpha.dtype),
        violation=xp.maximum(xp.max(violations(alpha, gradient, *box)), 0.0),
    )


def _linear(data: MatrixData, y: Array) -> Any:
    """Return Kᵀy in the full precision of the data."""
    y = y if namespace(data, y) is jnp else np.asarray(y, np.float64)
    if isinstance(data, DenseMatrix) and isinstance(y, np.ndarray):
        return data.correlations(y)
    return in_full_precision(lambda: data.correlations(jnp.asarray(y)), data, y)
