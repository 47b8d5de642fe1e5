"""Rprop, iRprop⁺ and NoisyRprop: steps by hand, NumPy twins, and the cases of Glasmachers 2008."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from jsvm import optim
from jsvm.optim.noisy_rprop import ASYMMETRY, DRIFT, LONGEST, RANGE

pytestmark = pytest.mark.usefixtures("x64")

NAMES = ("rprop", "irprop_plus", "noisy_rprop")


@functools.cache  # so that what is compiled for one is found again
def make(name: str, step: float, **arguments) -> Any:
    return getattr(optim, name)(step, **arguments)


def run(optimiser, gradients, values=None, params=None):
    """Feed a sequence of gradients in one compiled loop; return all updates and the last state."""
    if params is None:
        params = jax.tree.map(lambda g: jnp.zeros(g.shape[1:], g.dtype), gradients)
    if values is None:
        values = jnp.zeros(len(jax.tree.leaves(gradients)[0]))

    return _run(optimiser, params, gradients, jnp.asarray(values, dtype=float))


@functools.partial(jax.jit, static_argnums=0)
def _run(optimiser, params, gradients, values):
    def call(state, given):
        gradient, value = given
        updates, state = optimiser.update(gradient, state, params, value=value)
        return state, updates

    state, updates = lax.scan(call, optimiser.init(params), (gradients, values))
    return updates, state


def updates_of(optimiser, gradients, values=None) -> list[float]:
    updates, _ = run(optimiser, jnp.asarray(gradients, dtype=float), values)
    return np.asarray(updates).tolist()


# Sequences by hand


def test_rprop_makes_the_steps_of_algorithm_11_1():
    # G:    3   2  −1  −5   0   1   ∞   1   1
    # P·G:  0   +   −   +   0   0   0   0   +
    # δ:    1   2   1   2   2   2   2   2   4, but 3 is the largest
    gradients = [3, 2, -1, -5, 0, 1, math.inf, 1, 1]
    optimiser = make("rprop", 1.0, increase=2.0, decrease=0.5, largest=3.0)
    assert updates_of(optimiser, gradients) == [-1, -2, 1, 2, 0, -2, 0, -2, -3]


def test_rprop_has_the_factors_and_bounds_of_the_papers():
    found = updates_of(make("rprop", 0.1, smallest=0.04), [1, 1, 1, -1, 1, -1])
    np.testing.assert_allclose(found, [-0.1, -0.12, -0.144, 0.072, -0.04, 0.04], rtol=1e-14)
    found = updates_of(make("rprop", 40.0), [1, 1, 1])
    assert found == [-40, -48, -50]


def test_irprop_plus_takes_a_step_back_only_if_the_error_grew():
    # G:    1   1  −1   1  −1  −1  −1   1  −1
    # f:    5   4   6   4   3   3   2   2   1
    # P:    0   +   +   0   +   0   −   −   0
    # δ:    1   2   1   1   ½   ½   1   ½   ½
    # 3rd: turned, 6 > 4, the step of −2 is taken back; 5th and 8th: turned, no growth, no step.
    gradients, values = [1, 1, -1, 1, -1, -1, -1, 1, -1], [5, 4, 6, 4, 3, 3, 2, 2, 1]
    optimiser = make("irprop_plus", 1.0, increase=2.0, decrease=0.5)
    assert updates_of(optimiser, gradients, values) == [-1, -2, 2, -1, 0, 0.5, 1, 0, 0.5]


def test_irprop_plus_takes_the_error_for_grown_if_it_is_nan():
    optimiser = make("irprop_plus", 1.0)
    x = jnp.zeros(1)
    with jax.debug_nans(False):
        _, state = optimiser.update(jnp.ones(1), optimiser.init(x), value=1e300)
        update, state = optimiser.update(-jnp.ones(1), state, value=math.nan)
        assert float(update[0]) == 1.0
        assert float(state.value) == math.inf
        _, state = optimiser.update(-jnp.ones(1), state, value=1e300)
        assert float(state.value) == 1e300


# N, M and δ at the beginning of seven episodes of NoisyRprop, their gradients and their steps.
EPISODES = (
    # x(4) − x(0) = 4: S₁ = 4/√4 = 2 > 1.64, 2N. S₂ = 2 > 1.77, 2δ, N/2. No step left: no S₃.
    ((4, 1, 1.0), [-1, -1, -1, -1], [1, 1, 1, 1]),
    # S₁ = 0, but N is the shortest. S₂ = 1/√4 < 0.95, δ/2, 2N. S₃ = 0, but M = 1.
    ((4, 1, 2.0), [1, -1, 1, -1], [-2, 2, -2, 2]),
    # S₁ = 0 and N > 4: N/2, and S₂ = 1/√8 is not looked at.
    ((8, 1, 1.0), [1, -1] * 4, [-1, 1] * 4),
    # δ/2, 2N by S₂ = ½. S₃ = √4 (9 − 1)/(20/4) = 3.2 > 2.5: 2M, N/2.
    ((4, 1, 1.0), [9, -1, 9, -1], [-1, 1, -1, 1]),
    # Sums of two: 2, −2, 2, −2. S₂ = ½: δ/2, 2N. S₃ = 0 and M = 2: M/2, 2N.
    ((4, 2, 0.5), [1, 1, -3, 1, 3, -1, -2, 0], [0, -0.5, 0, 0.5, 0, -0.5, 0, 0.5]),
    # Seven steps right, nine times zero: S₁ = S₂ = 7/√16 = 1.75: 2N, δ stays.
    ((16, 1, 0.25), [-1] * 7 + [0] * 9, [0.25] * 7 + [0] * 9),
    # Far away and back: S₁ = 0, N/2, and S₂ = 11/√32 = 1.94 is not looked at.
    (
        (32, 1, 0.25),
        [-1] * 11 + [1] * 11 + [0] * 10,
        [0.25] * 11 + [-0.25] * 11 + [0] * 10,
    ),
)


def test_noisy_rprop_makes_the_steps_and_changes_worked_out_by_hand():
    optimiser = make("noisy_rprop", 1.0, shortest=4)
    step_by_step, state = jax.jit(optimiser.update), optimiser.init(jnp.zeros(()))
    for (length, averages, step), gradients, steps in EPISODES:
        assert (int(state.length), int(state.averages), float(state.step)) == (
            length,
            averages,
            step,
        )
        for gradient, expected in zip(gradients, steps, strict=True):
            update, state = step_by_step(jnp.asarray(float(gradient)), state)
            assert float(update) == expected
    assert (int(state.length), int(state.averages), float(state.step)) == (16, 1, 0.25)
    episode = set(state._fields) - {"length", "averages", "step"}
    assert all(float(getattr(state, name)) == 0 for name in episode)


def test_noisy_rprop_does_not_count_what_is_not_finite():
    gradients = np.array([-1.0, math.inf, -1, math.nan, -1, -math.inf, -1, 1])
    finite = gradients[np.isfinite(gradients)]
    optimiser = make("noisy_rprop", 1.0, shortest=4)
    with jax.debug_nans(False):
        updates, state = run(optimiser, jnp.asarray(gradients))
    assert updates.tolist() == [1, 0, 1, 0, 1, 0, 1, -2]
    for left, right in zip(state, run(optimiser, jnp.asarray(finite))[1], strict=True):
        np.testing.assert_array_equal(left, right)


# Twins: one coordinate, plain Python, points and whole episodes kept


class RpropTwin:
    def __init__(self, step, increase=1.2, decrease=0.5):
        self.step, self.increase, self.decrease = step, increase, decrease
        self.before = 0.0

    def move(self, gradient, value):
        if self.before * gradient > 0:
            self.step *= self.increase
        elif self.before * gradient < 0:
            self.step *= self.decrease
        self.before = gradient
        return -np.sign(gradient) * self.step


class IRpropPlusTwin(RpropTwin):
    last, error = 0.0, math.inf

    def move(self, gradient, value):
        turned = self.before * gradient < 0
        move = super().move(gradient, value)
        if turned:
            move = -self.last if value > self.error else 0.0
            self.before = 0.0
        self.last, self.error = move, value
        return move


class NoisyRpropTwin:
    def __init__(self, step, shortest=40, intervals=100):
        self.step, self.shortest, self.intervals = step, shortest, intervals
        self.N, self.M = shortest, 1
        self.batch, self.sums, self.points = [], [], [0.0]

    def move(self, gradient, value):
        self.batch.append(gradient)
        if len(self.batch) < self.M:
            return 0.0
        self.sums.append(sum(self.batch))
        self.batch = []
        move = -np.sign(self.sums[-1]) * self.step
        self.points.append(self.points[-1] + move)
        if len(self.sums) == self.N:
            self.look_back()
        return move

    def look_back(self):
        N, points, sums = self.N, np.array(self.points), np.array(self.sums)
        chosen = points[[0] + [t * N // self.intervals for t in range(1, self.intervals + 1)]]
        scale = self.step * math.sqrt(N)
        s1, s2 = abs(points[-1] - points[0]) / scale, (chosen.max() - chosen.min()) / scale
        left, right = sums[sums > 0], -sums[sums < 0]
        exponent = 0
        if len(left) and len(right):
            mean = (left.sum() + right.sum()) / N
            s3 = math.sqrt(N) * abs(right.mean() - left.mean()) / mean
            if s3 > 2.5:
                self.M, exponent = self.M * 2, -1
            elif s3 < 0.29 and self.M > 1:
                self.M, exponent = self.M // 2, 1
        if s1 < 0.25 and self.shortest < N:
            exponent -= 1
        else:
            exponent += s1 > 1.64
            if s2 < 0.95:
                self.step, exponent = self.step / 2, exponent + 1
            elif s2 > 1.77:
                self.step, exponent = self.step * 2, exponent - 1
        self.N = max(self.shortest, int(N * 2.0**exponent))
        self.sums, self.points = [], [0.0]


TWINS = {"rprop": RpropTwin, "irprop_plus": IRpropPlusTwin, "noisy_rprop": NoisyRpropTwin}


def walks(rng, size):
    """A pytree of gradients: skew, with a slow swing, so that every rule has its turn."""
    swing = 0.7 * np.sin(np.arange(size) / 90)[:, None]
    draws = rng.exponential(size=(size, 5)) - np.array([0.7, 1.0, 1.3, 0.2, 1.0]) + swing
    draws[rng.random(draws.shape) < 0.01] = 0.0
    return {"a": jnp.asarray(draws[:, 0]), "b": (jnp.asarray(draws[:, 1:].reshape(-1, 2, 2)),)}


@pytest.mark.parametrize("name", NAMES)
def test_a_pytree_in_a_compiled_loop_moves_as_the_twins_of_its_coordinates(name, rng):
    size = 4000 if name == "noisy_rprop" else 400
    gradients, values = walks(rng, size), rng.normal(size=size)
    arguments = {"shortest": 8} if name == "noisy_rprop" else {"increase": 1.1}
    updates, _ = run(make(name, 0.125, largest=1e99, **arguments), gradients, values)
    assert jax.tree.structure(updates) == jax.tree.structure(gradients)

    columns = [np.concatenate([t["a"][:, None], t["b"][0].reshape(size, 4)], axis=1)
               for t in (gradients, updates)]  # fmt: skip
    twins = [TWINS[name](0.125, **arguments) for _ in range(5)]
    for given_, found in zip(columns[0].T, columns[1].T, strict=True):
        twin = twins.pop()
        expected = [twin.move(float(g), v) for g, v in zip(given_, values, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert len(set(np.abs(expected))) > 3  # the step size has changed


@given(
    sizes=st.sampled_from([(1, 1), (1, 7), (3, 2), (5, 30), (8, 3), (12, 5), (13, 13), (40, 100)]),
    seed=st.integers(0, 2**32 - 1),
    drift=st.sampled_from([-0.5, 0.0, 0.1, 2.0]),
)
def test_noisy_rprop_is_its_twin_for_any_episodes_and_intervals(sizes, seed, drift):
    shortest, intervals = sizes
    with jax.enable_x64(True):
        gradients = np.random.default_rng(seed).exponential(size=300) - 1 + drift
        optimiser = make("noisy_rprop", 0.125, shortest=shortest, intervals=intervals, largest=1e99)
        updates, state = run(optimiser, jnp.asarray(gradients))
    twin = NoisyRpropTwin(0.125, shortest, intervals)
    assert updates.tolist() == [twin.move(g, 0.0) for g in gradients]
    assert (int(state.length), int(state.averages), float(state.step)) == (
        twin.N,
        twin.M,
        twin.step,
    )


# Properties


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-300, 300))
def test_coordinates_do_not_know_of_each_other_nor_of_the_scale_of_the_gradient(name, seed, power):
    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        gradients, values = rng.normal(size=(120, 6)) + 0.3, rng.normal(size=120)
        order, scales = rng.permutation(6), np.where(np.arange(6) < 3, 2.0**power, 1.0)
        arguments = {"shortest": 4} if name == "noisy_rprop" else {}
        optimiser = make(name, 0.125, **arguments)
        plain, _ = run(optimiser, jnp.asarray(gradients), values)
        other, _ = run(optimiser, jnp.asarray((gradients * scales)[:, order]), values)
    np.testing.assert_array_equal(np.asarray(plain)[:, order], other)


@given(seed=st.integers(0, 2**32 - 1))
def test_rprop_depends_on_signs_only(seed):
    with jax.enable_x64(True):
        gradients = np.random.default_rng(seed).normal(size=(50, 3))
        bent = np.sign(gradients) * np.exp(20 * gradients)
        plain, other = (run(make("rprop", 0.1), jnp.asarray(g))[0] for g in (gradients, bent))
    np.testing.assert_array_equal(plain, other)


@pytest.mark.parametrize("name", ["rprop", "irprop_plus"])
def test_a_step_size_never_leaves_its_bounds(name, rng):
    signs = np.sign(rng.normal(size=(300, 20)) + np.linspace(-2, 2, 20))
    optimiser = make(name, 0.1, smallest=0.05, largest=0.2)
    updates, state = run(optimiser, jnp.asarray(signs))
    steps = state.step if name == "rprop" else state.coordinates.step
    assert float(steps.min()) >= 0.05
    assert float(steps.max()) <= 0.2
    moved = np.abs(np.asarray(updates))[np.asarray(updates) != 0]
    assert moved.min() >= 0.05
    assert moved.max() <= 0.2
    assert {0.05, 0.2} <= set(moved)  # and it has been at both


def minimise(optimiser, steps):
    optimiser = optax.with_extra_args_support(optimiser)

    def objective(p):
        return jnp.sum((p["x"] - 2.0) ** 2) + 3.0 * (p["y"] + 1.0) ** 2

    def descend(carry, _):
        params, state = carry
        value, gradient = jax.value_and_grad(objective)(params)
        updates, state = optimiser.update(gradient, state, params, value=value)
        return (optax.apply_updates(params, updates), state), None

    params = {"x": jnp.array([0.0, 5.0, -7.0]), "y": jnp.asarray(4.0)}
    start = params, optimiser.init(params)
    (params, _), _ = jax.jit(lambda c: lax.scan(descend, c, length=steps))(start)
    return objective(params)


@pytest.mark.parametrize(
    "optimiser",
    [
        optax.adam(0.1),
        make("rprop", 0.1),
        make("irprop_plus", 0.1),
        make("noisy_rprop", 0.1),
        optax.chain(optax.clip_by_global_norm(1.0), make("irprop_plus", 0.1), optax.scale(0.5)),
    ],
    ids=["adam", "rprop", "irprop_plus", "noisy_rprop", "chain"],
)
def test_each_optimiser_takes_the_place_of_adam(optimiser):
    assert minimise(optimiser, 4000) < 1e-4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32, jnp.float64])
def test_the_dtype_is_that_of_the_parameters(name, dtype):
    params = {"w": jnp.ones((2, 3), dtype), "none": None, "empty": jnp.zeros((0,), dtype)}
    optimiser = make(name, 0.1)
    state, compiled = optimiser.init(params), jax.jit(optimiser.update)
    for factor in (1.0, -1.0, 1.0):  # gradients of a higher precision than the parameters
        gradient = jax.tree.map(lambda p, f=factor: f * jnp.ones(p.shape), params)
        updates, new = compiled(gradient, state, params, value=1.0)
        assert [a.dtype for a in jax.tree.leaves(new)] == [a.dtype for a in jax.tree.leaves(state)]
        assert {leaf.dtype for leaf in jax.tree.leaves(updates)} == {jnp.dtype(dtype)}
        state = new


@pytest.mark.parametrize("name", NAMES)
def test_a_derivative_that_is_not_finite_moves_nothing_and_leaves_no_trace_of_nan(name):
    optimiser = make(name, 0.1)
    x = jnp.zeros(5)
    state, compiled = optimiser.init(x), jax.jit(optimiser.update)
    with jax.debug_nans(False):
        gradient = jnp.array([math.nan, math.inf, -math.inf, 1e308, 1.0])
        for sign in (1.0, 1.0, -1.0, -1.0) * 30:  # long enough for two episodes
            update, state = compiled(sign * gradient, state, x, value=1.0)
            x = optax.apply_updates(x, update)
            assert np.all(np.asarray(update)[:3] == 0)
            assert np.all(np.isfinite(update))
    assert not any(np.isnan(leaf).any() for leaf in jax.tree.leaves(state))


def test_a_gradient_beyond_the_range_of_the_parameters_is_not_finite_for_them():
    optimiser = make("noisy_rprop", 0.1)
    state = optimiser.init(jnp.zeros(1, jnp.float32))
    update, state = optimiser.update(jnp.array([1e300]), state)
    assert float(update[0]) == 0
    assert int(state.drawn[0]) == int(state.taken[0]) == 0


@pytest.mark.parametrize("name", NAMES)
def test_no_parameters_are_no_error(name):
    optimiser = make(name, 0.1)
    updates, _ = optimiser.update({}, optimiser.init({}), {}, value=1.0)
    assert updates == {}


# Range of numbers


def test_steps_end_at_the_smallest_normal_number(rng):
    tiny = float(np.finfo(np.float64).tiny)
    optimiser = make("noisy_rprop", 8 * tiny, shortest=4)
    gradients = np.tile([1.0, -1.0], 500)
    updates, state = run(optimiser, jnp.asarray(gradients))
    assert float(state.step) == tiny
    assert np.all(np.asarray(updates) != 0)
    _, state = run(make("rprop", 8 * tiny), jnp.asarray(gradients))
    assert float(state.step) == tiny


def test_episodes_and_averages_end_before_they_overflow():
    optimiser = make("noisy_rprop", 1.0, shortest=40)
    state = optimiser.init(jnp.zeros(()))
    longest = 40 * 2**21
    assert longest <= LONGEST < 2 * longest
    counts = {"length": longest, "taken": longest - 1, "phase": longest - 100, "place": longest - 1}
    counts |= {"averages": LONGEST, "drawn": LONGEST - 1, "left_count": longest // 2}
    counts |= {"right_count": longest // 2}
    state = state._replace(**{name: jnp.asarray(n, jnp.int32) for name, n in counts.items()})
    state = state._replace(left=jnp.asarray(1e9), right=jnp.asarray(1.0))
    # S₁ and S₂ are enormous, S₃ is too: N ← 2N/4, M would be doubled.
    _, new = optimiser.update(jnp.asarray(-1.0), state)
    assert int(new.taken) == 0
    assert int(new.averages) == LONGEST
    assert int(new.length) == longest // 2
    # The range is small and S₃ is zero: 8N, which is too long.
    state = state._replace(highest=state.place, lowest=state.place, left=jnp.asarray(2.0))
    _, new = optimiser.update(jnp.asarray(-1.0), state)
    assert int(new.length) == longest
    assert int(new.averages) == LONGEST // 2


# Arguments


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"step": 0.0}, "step=0.0.*positive"),
        ({"step": -1.0}, "step=-1.0.*positive"),
        ({"step": math.nan}, "step=nan.*positive"),
        ({"step": math.inf}, "step=inf.*finite"),
        ({"step": 0.1, "smallest": 0.2}, "smallest=0.2.*step=0.1"),
        ({"step": 0.1, "smallest": -0.2}, "smallest=-0.2"),
        ({"step": 60.0}, "largest=50.0.*step=60.0: raise it"),
    ],
)
def test_wrong_step_sizes_are_named(name, arguments, match):
    with pytest.raises(ValueError, match=match):
        make(name, **arguments)


@pytest.mark.parametrize("name", ["rprop", "irprop_plus"])
def test_wrong_factors_are_named(name):
    for increase in (1.0, 0.5, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"increase=.*above 1"):
            make(name, 0.1, increase=increase)
    for decrease in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=r"decrease=.*between 0 and 1"):
            make(name, 0.1, decrease=decrease)


def test_wrong_counts_are_named():
    for count in (0, -3, 2**21):
        with pytest.raises(ValueError, match=f"shortest={count} has to be"):
            make("noisy_rprop", 0.1, shortest=count)
        with pytest.raises(ValueError, match=f"intervals={count} has to be"):
            make("noisy_rprop", 0.1, intervals=count)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_that_are_no_real_numbers_are_refused(name):
    with pytest.raises(ValueError, match="parameters are int32: convert"):
        make(name, 0.1).init({"a": jnp.arange(3, dtype=jnp.int32)})
    with pytest.raises(ValueError, match="parameters are complex128: convert"):
        make(name, 0.1).init(jnp.ones(3, complex))


def test_irprop_plus_asks_for_the_value():
    optimiser = make("irprop_plus", 0.1)
    state = optimiser.init(jnp.zeros(2))
    with pytest.raises(ValueError, match=r"value=value.*rprop"):
        optimiser.update(jnp.ones(2), state)


# Quantiles (Glasmachers 2008, section 11.3.4), re-derived


def test_the_quantiles_of_the_drift_are_those_of_a_normal_number(rng):
    drift = np.abs(rng.normal(size=400_000))
    np.testing.assert_allclose(np.quantile(drift, [0.2, 0.9]), DRIFT, atol=0.01)


def test_the_quantiles_of_the_range_are_those_of_a_wiener_process(rng):
    # The upper one is printed as 1.77; 10⁶ draws give 1.748 (1.738 without the first place).
    walk = np.cumsum(rng.normal(size=(60_000, 100)), axis=1) / 10
    extent = np.maximum(walk.max(axis=1), 0) - np.minimum(walk.min(axis=1), 0)
    low, high = np.quantile(extent, [0.1, 0.75])
    np.testing.assert_allclose(low, RANGE[0], atol=0.01)
    np.testing.assert_allclose(high, 1.748, atol=0.012)
    assert abs(high - RANGE[1]) < 0.035


def test_the_quantiles_of_the_asymmetry_are_those_of_normal_gradients(rng):
    size = 640
    draws = rng.normal(size=(20_000, size))
    right, left = np.maximum(draws, 0), np.maximum(-draws, 0)
    means = right.sum(1) / (right > 0).sum(1) - left.sum(1) / (left > 0).sum(1)
    asymmetry = math.sqrt(size) * np.abs(means) / ((right + left).sum(1) / size)
    found = np.quantile(asymmetry, [0.15, 0.9])
    np.testing.assert_allclose(found, ASYMMETRY, atol=0.05)


# The test cases of Glasmachers 2008, section 11.4


def random_gradient(number, x, m):
    """The derivative of f⁽ⁱ⁾ with parameters m; coordinates of f⁽²⁾ and f⁽³⁾ on the last axis."""
    if number == 1:
        return jnp.where(m <= 0.25, -1.0, 1.0) * jnp.sign(x)
    if number == 2:
        return 2 * (x - m)
    if number == 3:
        return 2 * (x - m) + 1.8 * (x - m)[..., ::-1]
    return jnp.where(x <= m, -3.0, 1.0)


def distances(number, steps, *, runs=20, every=1000, start=1.05):
    """Return the distances to the optimum after each `every` steps, one column for each run."""
    optimum = {1: 0.0, 2: 0.5, 3: 0.5, 4: 0.75}[number]
    shape = (runs, 2) if number in (2, 3) else (runs, 1)
    side = np.where(np.arange(shape[0] * shape[1]).reshape(shape) % 3 == 0, -1.0, 1.0)
    x = jnp.asarray(optimum + side * start / math.sqrt(shape[1]))
    optimiser = make("noisy_rprop", 0.01)

    def step(carry, m):
        x, state = carry
        update, state = optimiser.update(random_gradient(number, x, m), state)
        return (optax.apply_updates(x, update), state), None

    def block(carry, key):
        carry, _ = lax.scan(step, carry, jax.random.uniform(key, (every, *shape)))
        return carry, carry[0]

    keys = jax.random.split(jax.random.key(number), steps // every)
    _, places = jax.jit(lambda c: lax.scan(block, c, keys))((x, optimiser.init(x)))
    return np.linalg.norm(np.asarray(places) - optimum, axis=2), np.asarray(places)


def test_f1_is_located_with_a_constant_rate_on_the_logarithmic_scale():
    # 309 decades in about 185,000 steps are 16.7 in 10,000 (Figure 11.1: 13.4).
    decades = np.log10(distances(1, 40_000, every=10_000)[0])
    rates = -np.diff(decades, axis=0).mean(axis=1)
    assert np.all((rates > 12) & (rates < 22)), rates


def test_f2_and_f3_come_near_their_optimum_f3_more_slowly():
    f2, f3 = (np.median(distances(n, 100_000)[0][-20:]) for n in (2, 3))
    assert f2 < 0.015
    assert f2 < f3 < 0.04


def test_f4_goes_to_the_mean_and_not_to_the_median():
    far, places = distances(4, 100_000)
    assert np.median(far[-20:]) < 0.01
    assert np.all(np.abs(places[-1] - 0.75) < np.abs(places[-1] - 0.5))


def test_without_noise_the_jumps_over_the_optimum_become_shorter():
    # Where S₂ is not looked at for a small S₁ in the shortest episodes, this stays as it is.
    optimiser = make("noisy_rprop", 0.01)

    def step(carry, _):
        x, state = carry
        update, state = optimiser.update(2 * x, state)
        return (optax.apply_updates(x, update), state), None

    x = jnp.linspace(-30.0, 40.0, 12)
    (x, _), _ = jax.jit(lambda c: lax.scan(step, c, length=20_000))((x, optimiser.init(x)))
    assert float(jnp.abs(x).max()) < 0.02
