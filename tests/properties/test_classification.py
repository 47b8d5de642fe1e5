"""What must hold of every two-class machine: symmetries, weights, costs, and its certificate."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_problems import (
    EPS,
    FEATURES,
    KERNELS,
    MACHINES,
    SEEDS,
    N,
    assert_same,
    powers,
    samples,
    solved,
    thorough,
)

from jsvm import Machine, problems, solve
from jsvm.problems.certificate import gap, joachims
from jsvm.solvers import SMO

# -- symmetries ------------------------------------------------------------------------------------


def unpermuted(alpha, order):
    """Return α in the order of the examples before they were permuted; doubled or not."""
    back = np.argsort(order)
    return alpha.reshape(-1, len(order))[:, back].reshape(-1)


@thorough
@given(sample=samples(), name=st.sampled_from(sorted(MACHINES)), seed=SEEDS)
def test_permuting_the_examples_permutes_the_answer_of_every_machine(sample, name, seed):
    order = np.random.default_rng(seed).permutation(N)
    build = MACHINES[name]
    here = solved(build(sample.given, sample.y, sample.target, sample.C))
    permuted = sample.gram(sample.X[order]), sample.y[order], sample.target[order]
    there = solved(build(*permuted, sample.C))
    assert_same(here, there, unpermuted(there.alpha, order))


@settings(max_examples=10)
@given(sample=samples(), seed=SEEDS)
def test_permuting_the_examples_permutes_the_answer(sample, seed):
    order = np.random.default_rng(seed).permutation(N)
    here = solved(problems.c_svc(sample.K, sample.y, sample.C))
    K = sample.K[np.ix_(order, order)]
    there = solved(problems.c_svc(K, sample.y[order], sample.C))
    assert_same(here, there, unpermuted(there.alpha, order))


@thorough
@given(sample=samples(), seed=SEEDS)
def test_permuting_the_features_changes_nothing(sample, seed):
    order = np.random.default_rng(seed).permutation(FEATURES)
    here = solved(problems.c_svc(sample.given, sample.y, sample.C))
    there = solved(problems.c_svc(sample.gram(sample.X[:, order]), sample.y, sample.C))
    assert_same(here, there)


@thorough
@given(sample=samples(), scale=powers(-3, 3))
def test_scaled_points_with_a_scaled_width_are_the_same_machine(sample, scale):
    here = solved(problems.c_svc((sample.kernel, sample.X), sample.y, sample.C))
    kernel = KERNELS[sample.name][2](sample.width, scale)
    there = solved(problems.c_svc((kernel, scale * sample.X), sample.y, sample.C))
    assert_same(here, there)


@thorough
@given(sample=samples(), squared=st.booleans())
def test_flipping_the_labels_flips_the_answer(sample, squared):
    build = problems.squared_svc if squared else problems.c_svc
    here = solved(build(sample.given, sample.y, sample.C))
    there = solved(build(sample.given, -sample.y, sample.C))
    assert_same(here, there, -there.alpha, -there.solution.multipliers)


@thorough
@given(sample=samples(costs=powers(-3, 3)), factor=powers(-3, 3))
def test_scaling_the_kernel_is_scaling_the_cost(sample, factor):
    here = solved(problems.c_svc(sample.K, sample.y, sample.C))
    there = solved(problems.c_svc(factor * sample.K, sample.y, sample.C / factor))
    assert_same(here, there, factor * there.alpha)


# -- examples that come and go ---------------------------------------------------------------------

COPIES = 32 - N


@thorough
@given(sample=samples(), seed=SEEDS, name=st.sampled_from(["c_svc", "epsilon_svr", "one_class"]))
def test_copies_of_an_example_are_a_weight(sample, seed, name):
    example = np.r_[np.arange(N), np.random.default_rng(seed).integers(0, N, COPIES)]
    weight = np.bincount(example).astype(float)

    def machine(K, y, target, weight):
        if name == "one_class":
            return problems.one_class(K, 0.3, weight)
        if name == "epsilon_svr":
            return problems.epsilon_svr(K, target, sample.C * weight, 0.1)
        return problems.c_svc(K, y, sample.C * weight)

    here = solved(machine(sample.given, sample.y, sample.target, weight))
    copied = sample.gram(sample.X[example]), sample.y[example], sample.target[example]
    there = solved(machine(*copied, np.ones(32)))
    together = [np.bincount(example, part) for part in there.alpha.reshape(-1, 32)]
    assert_same(here, there, np.concatenate(together))


@thorough
@given(sample=samples(), seed=SEEDS)
def test_an_example_beyond_the_margin_changes_nothing(sample, seed):
    here = solved(problems.c_svc(sample.given, sample.y, sample.C))
    Z = 2.0 * np.random.default_rng(seed).normal(size=(50, FEATURES))
    decision = sample.between(Z, sample.X) @ here.alpha + here.solution.bias
    larger = max(1.0, np.abs(sample.between(Z, Z)).max() / np.abs(sample.K).max())
    error = here.gap + larger * here.error
    beyond = np.flatnonzero(np.abs(decision) > 1.0 + 2 * error)
    assume(len(beyond) > 0)
    new = beyond[0]
    X, y = np.vstack([sample.X, Z[new]]), np.r_[sample.y, np.sign(decision[new])]
    more = solved(problems.c_svc(sample.gram(X), y, sample.C))
    assert_same(more, here, np.r_[here.alpha, 0.0], same_examples=False)


@thorough
@given(sample=samples())
def test_removing_what_is_no_support_vector_changes_nothing(sample):
    here = solved(problems.c_svc(sample.K, sample.y, sample.C))
    kept = np.flatnonzero(here.alpha)
    fewer = solved(problems.c_svc(sample.K[np.ix_(kept, kept)], sample.y[kept], sample.C))
    assert_same(fewer, here, here.alpha[kept], same_examples=False)
    absent = np.where(here.alpha != 0, sample.C, 0.0)  # a cost of zero is absence
    closed = solved(problems.c_svc(sample.K, sample.y, absent))
    assert_same(fewer, closed, closed.alpha[kept])


# -- costs -----------------------------------------------------------------------------------------


@thorough
@given(
    sample=samples(names=("rbf", "laplacian", "product"), widths=powers(-0.5, 2)),
    factor=powers(0.01, 3),
)
def test_a_large_cost_is_a_hard_margin(sample, factor):
    assume(len(np.unique(sample.X, axis=0)) == N)  # the kernels separate different points
    hard = solved(problems.hard_margin(sample.given, sample.y))
    soft = solved(problems.c_svc(sample.given, sample.y, factor * np.abs(hard.alpha).max()))
    assert_same(hard, soft)
    assert_same(soft, hard)


@thorough
@given(sample=samples(), fraction=powers(-6, -0.01))
def test_at_a_small_cost_the_smaller_class_is_at_its_bound(sample, fraction):
    """If n C max|K| < 1 every G has the sign of its label, and any two classes violate."""
    C = fraction / (N * np.abs(sample.K).max())
    here = solved(problems.c_svc(sample.given, sample.y, C))
    sign = 1.0 if np.sum(sample.y > 0) <= np.sum(sample.y < 0) else -1.0
    np.testing.assert_array_equal(here.alpha[sample.y == sign], sign * C)


@thorough
@given(sample=samples(), factor=powers(0, 3))
def test_objective_length_and_sum_of_alpha_grow_with_the_cost(sample, factor):
    """−f* has the derivative Σξ ≥ 0, ‖w‖² grows as in every penalty method, Σ|α| = −f + ½‖w‖²."""
    low = solved(problems.c_svc(sample.given, sample.y, sample.C))
    high = solved(problems.c_svc(sample.given, sample.y, factor * sample.C))
    # How far objectives are from their optima, and Σ|α| with them: f and ½‖w‖² each by that much.
    error = sum(
        s.gap * N * cost + s.report.objective_error
        for s, cost in ((low, sample.C), (high, factor * sample.C))
    )
    assert high.report.objective <= low.report.objective + error
    assert np.abs(low.alpha).sum() <= np.abs(high.alpha).sum() + 4 * error


# -- certificates ----------------------------------------------------------------------------------


@settings(max_examples=10)
@given(sample=samples(), tol=powers(-8, -1))
def test_every_answer_has_its_certificate(sample, tol):
    here = solved(problems.c_svc(sample.K, sample.y, sample.C), SMO(tol=tol))
    error = here.report.duality_gap_error
    assert -error <= here.report.duality_gap <= N * sample.C * here.gap + error


@thorough
@given(sample=samples(), tol=powers(-8, -1), steps=st.integers(0, 60))
def test_the_gap_bounds_the_duality_gap_of_any_point(sample, tol, steps):
    """P + f = Σ max over the box of (G_i − λ)(a − α_i), each at most C ψ."""
    problem = problems.c_svc(sample.K, sample.y, sample.C)
    for solver in (SMO(tol=tol), SMO(block=False, max_steps=steps, tol=tol)):
        solution = solve(problem, solver)
        report = problems.check(problem, solution, tol)
        assert report, report.complaints
        error = report.duality_gap_error
        worst = report.violation + report.violation_error
        assert -error <= report.duality_gap <= N * sample.C * worst + error


@thorough
@given(sample=samples(), steps=st.integers(1, 60))
def test_joachims_rule_is_implied_by_the_gap(sample, steps):
    """Collobert & Bengio 2000, section 2: ψ ≤ τ implies Joachims' conditions with the same τ."""
    problem = problems.c_svc(sample.K, sample.y, sample.C)
    s = solve(problem, SMO(max_steps=steps, block=False))
    G = sample.y - sample.K @ s.alpha
    with jax.enable_x64(True):
        tau = float(gap(problem, jnp.asarray(s.alpha), jnp.asarray(G)))
        weaker = float(joachims(problem, jnp.asarray(s.alpha), jnp.asarray(G)))
    error = 4 * EPS * np.abs(G).max()
    assert weaker <= max(tau, 0.0) + error
    free = (s.alpha > problem.lower) & (s.alpha < problem.upper)
    if free.any():  # the conditions (2) of Collobert & Bengio 2000, written out
        level = G[free].mean()
        assert (np.abs(G[free] - level) <= weaker + error).all()
        assert (G[s.alpha == problem.lower] <= level + weaker + error).all()
        assert (G[s.alpha == problem.upper] >= level - weaker - error).all()


@thorough
@given(sample=samples(), seed=SEEDS)
def test_a_machine_is_the_sum_of_its_kernel_values(sample, seed):
    here = solved(problems.c_svc((sample.kernel, sample.X), sample.y, sample.C))
    Z = np.random.default_rng(seed).normal(size=(N, FEATURES))
    with jax.enable_x64(True):
        values = np.asarray(Machine.of(sample.kernel, sample.X, here.solution)(Z))
    K = sample.between(Z, sample.X)
    # Squared distances by products are wrong by some units of the squared lengths, and the
    # exponential multiplies that by the width.
    lengths = (Z**2).sum(1)[:, None] + (sample.X**2).sum(1)[None, :]
    terms = np.maximum(np.abs(K), sample.between(np.abs(Z), np.abs(sample.X)))
    each = EPS * (64.0 + 8.0 * (1.0 + sample.width) * lengths) * terms
    error = each @ np.abs(here.alpha) + 8 * EPS * abs(here.solution.bias)
    assert (np.abs(values - (K @ here.alpha + here.solution.bias)) <= error).all()
