"""The block step: descent always, exactness inside the box, no harm from singular matrices."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems_for_tests import rbf, two_classes

from jsvm import problems
from jsvm.problems import Tile
from jsvm.solvers.tile.block_step import block_step, first_places

N = 12


def program(K, y, L, U, groups=None):
    groups = jnp.zeros(len(y), jnp.int32) if groups is None else jnp.asarray(groups)
    count = int(groups.max()) + 1
    return problems.QuadraticProgram(
        Tile.of(problems.Dense(jnp.asarray(K))),
        jnp.asarray(y),
        jnp.asarray(L),
        jnp.asarray(U),
        groups,
        jnp.zeros(count),
    )


step = jax.jit(block_step, static_argnames="slots")


def objective(K, y, alpha):
    return 0.5 * alpha @ K @ alpha - y @ alpha


def start(rng, groups=None):
    """A start inside the box [−1, 1] with zero sums in every group."""
    groups = np.zeros(N, int) if groups is None else groups
    alpha = rng.uniform(-0.4, 0.4, N)
    for g in np.unique(groups):
        alpha[groups == g] -= alpha[groups == g].mean()
    return np.clip(alpha, -0.99, 0.99)


MATRICES = {
    "gaussian": lambda X: rbf(X),
    "linear (singular)": lambda X: X @ X.T,
    "duplicates (singular)": lambda X: rbf(np.concatenate([X[:6], X[:6]])),
    "indefinite": lambda X: np.sin(np.linalg.norm(X[:, None] - X[None], axis=-1)),
    "negative": lambda X: -rbf(X),
    "zero": lambda X: np.zeros((len(X), len(X))),
}


@pytest.mark.usefixtures("x64")
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(MATRICES)),
    slots=st.sampled_from([5, N]),
    two_groups=st.booleans(),
)
def test_block_step_never_raises_the_objective_and_stays_feasible(seed, kind, slots, two_groups):
    rng = np.random.default_rng(seed)
    X, y = two_classes(rng, N)
    K = MATRICES[kind](X)
    groups = (np.arange(N) // 2) % 2 if two_groups else np.zeros(N, int)
    alpha = start(rng, groups)
    alpha[0] = -1.0 if rng.uniform() < 0.5 else alpha[0]  # at a bound
    L, U = -np.ones(N), np.ones(N)
    G = y - K @ alpha
    new, new_G, rounds = step(program(K, y, L, U, groups), alpha, G, slots=slots)
    new = np.asarray(new)
    assert np.isfinite(new).all()
    assert (new >= L).all()
    assert (new <= U).all()
    assert objective(K, y, new) <= objective(K, y, alpha) + 1e-12
    for g in range(2):
        np.testing.assert_allclose(new[groups == g].sum(), alpha[groups == g].sum(), atol=1e-11)
    np.testing.assert_allclose(new_G, y - K @ new, atol=1e-10)
    assert int(rounds) >= 1
    assert alpha[0] != -1.0 or new[0] == -1.0  # what is at a bound stays there


@pytest.mark.usefixtures("x64")
def test_one_block_step_solves_the_free_problem(rng):
    X, y = two_classes(rng, N)
    K, wide = rbf(X, gamma=2.0), np.full(N, 1e3)
    alpha = start(rng)
    _, G, _ = step(program(K, y, -wide, wide), alpha, y - K @ alpha, slots=N)
    assert np.ptp(np.asarray(G)) < 1e-10  # G is the same everywhere: the KKT system holds


@pytest.mark.usefixtures("x64")
def test_without_curvature_the_step_goes_to_the_bound():
    y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    K = np.zeros((N, N))
    alpha = np.zeros(N)
    one = np.ones(N)
    new, _, _ = step(program(K, y, -one, one), alpha, y.copy(), slots=N)
    np.testing.assert_allclose(np.asarray(new), y)  # every variable at the bound of its label


@pytest.mark.usefixtures("x64")
def test_a_ray_to_infinity_is_not_followed():
    y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    far = np.full(N, np.inf)
    new, G, _ = step(program(np.zeros((N, N)), y, -far, far), np.zeros(N), y.copy(), slots=N)
    assert np.isfinite(np.asarray(new)).all()
    assert np.isfinite(np.asarray(G)).all()


@pytest.mark.usefixtures("x64")
def test_nothing_free_nothing_done():
    y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    K, one = np.eye(N), np.ones(N)
    new, _, rounds = step(program(K, y, -one, one), y, y - K @ y, slots=N)
    np.testing.assert_array_equal(new, y)
    assert int(rounds) == 0


@given(mask=st.lists(st.booleans(), min_size=9, max_size=9))
def test_first_places_lists_the_members_first(mask):
    places = np.asarray(partial(first_places, count=6)(jnp.array(mask)))
    members = np.flatnonzero(mask)[:6]
    np.testing.assert_array_equal(places[: len(members)], members)
    assert ((places >= 0) & (places < len(mask))).all()
