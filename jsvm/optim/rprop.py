"""Resilient backpropagation: a step size for each coordinate, directed by signs alone.

With G the gradient, P the one before, and a step size δ for each coordinate,

    δ ← η₊ δ  where P G > 0,    δ ← η₋ δ  where P G < 0,    x ← x − sign(G) δ,    P ← G

(Glasmachers 2008, Algorithm 11.1). This is the variant that Igel and Hüsken (2003) call Rprop⁻: a
step over a minimum is not taken back, the next one only goes the other way with half the length.
Their iRprop⁺ differs where P G < 0, after δ was shortened: there is no step, or, if the error has
grown since the step before, that step is taken back; and P ← 0, so that the next step does not
change δ.

Only signs enter: the sequence of steps is the same for any increasing function of the objective
(iRprop⁺ also compares its values). Glasmachers has no bounds on δ; the default of `largest` is that
of Riedmiller and of Igel and Hüsken, the default of `smallest` that of the latter.

**Not finite.** A derivative that is infinite or NaN counts as zero: no step in this coordinate, and
δ changes neither now nor at the next step. For iRprop⁺ an error that is NaN is larger than any
number.

`optax.rprop` (0.2) differs: each call adds the step of the call before.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

Rule = Callable[[jax.Array, Any], tuple[jax.Array, Any]]


class RpropState(NamedTuple):
    """δ, and the sign of P, which is 0 before the first step; pytrees like the parameters."""

    step: Any
    sign: Any


class IRpropPlusState(NamedTuple):
    """The state of every coordinate, and the error at the call before."""

    coordinates: RpropState
    value: jax.Array


def rprop(
    step: float,
    *,
    increase: float = 1.2,
    decrease: float = 0.5,
    smallest: float = 0.0,
    largest: float = 50.0,
) -> optax.GradientTransformationExtraArgs:
    """Make Rprop⁻ (Glasmachers 2008, Algorithm 11.1).

    Parameters
    ----------
    step : float
        Initial step size of every coordinate.
    increase, decrease : float
        Factors of a step size, η₊ > 1 after two derivatives of one sign, η₋ < 1 after a change.
    smallest, largest : float
        Bounds of the step sizes.

    Returns a transformation of the gradient of a function to be minimised; its updates are to be
    added.

    Examples
    --------
    >>> import jax, optax
    >>> optimiser = rprop(0.1)
    >>> x = jax.numpy.array([1.0, -3.0])
    >>> state = optimiser.init(x)
    >>> for _ in range(50):
    ...     update, state = optimiser.update(2 * x, state)
    ...     x = optax.apply_updates(x, update)
    >>> bool(abs(x).max() < 1e-3)
    True
    """
    init, adapt = _sign_rule(step, increase, decrease, smallest, largest)

    def move(gradient: jax.Array, old: RpropState) -> tuple[jax.Array, RpropState]:
        new = adapt(gradient, old)
        return -new.sign * new.step, new

    return coordinatewise(init, move)


def irprop_plus(
    step: float,
    *,
    increase: float = 1.2,
    decrease: float = 0.5,
    smallest: float = 0.0,
    largest: float = 50.0,
) -> optax.GradientTransformationExtraArgs:
    """Make iRprop⁺ of Igel and Hüsken (2003): steps are taken back if the error grew.

    The parameters are those of :func:`rprop`; `update` needs the error as `value`.

    Examples
    --------
    >>> import jax, optax
    >>> optimiser = irprop_plus(0.1)
    >>> x = jax.numpy.array([1.0, -3.0])
    >>> state = optimiser.init(x)
    >>> for _ in range(50):
    ...     value, gradient = jax.value_and_grad(lambda x: x @ x)(x)
    ...     update, state = optimiser.update(gradient, state, value=value)
    ...     x = optax.apply_updates(x, update)
    >>> bool(abs(x).max() < 1e-3)
    True
    """
    init_coordinates, adapt = _sign_rule(step, increase, decrease, smallest, largest)

    def init(params: Any) -> IRpropPlusState:
        coordinates = init_coordinates(params)
        dtype = at_least_single(*jax.tree.leaves(coordinates.step))
        return IRpropPlusState(coordinates, jnp.asarray(jnp.inf, dtype))

    def update(
        updates: Any, state: Any, params: Any = None, *, value: Any = None, **extra: Any
    ) -> tuple[Any, IRpropPlusState]:
        if value is None:
            raise ValueError(
                "irprop_plus compares errors: pass the value of the function at the parameters, "
                "update(gradient, state, params, value=value), or take rprop, which needs none"
            )
        error = jnp.asarray(value, state.value.dtype)
        error = jnp.where(jnp.isnan(error), jnp.inf, error)
        grew = error > state.value

        def move(gradient: jax.Array, old: RpropState) -> tuple[jax.Array, RpropState]:
            new = adapt(gradient, old)
            turned = old.sign * new.sign < 0
            # P is 0 after a turn, so the step before was −sign(P) δ with δ not yet shortened.
            back = jnp.where(grew, old.sign * old.step, 0)
            update = jnp.where(turned, back, -new.sign * new.step)
            return update, new._replace(sign=jnp.where(turned, 0, new.sign))

        moves, coordinates = per_leaf(move, updates, state.coordinates)
        return moves, IRpropPlusState(coordinates, error)

    return optax.GradientTransformationExtraArgs(init, update)


def _sign_rule(
    step: float, increase: float, decrease: float, smallest: float, largest: float
) -> tuple[Callable[[Any], RpropState], Callable[[jax.Array, RpropState], RpropState]]:
    """Check the arguments; return the first state, and how a gradient changes that of a leaf."""
    check_steps(step, smallest, largest)
    if not 1.0 < increase < math.inf:
        raise ValueError(f"increase={increase} has to be a finite factor above 1, as 1.2")
    if not 0.0 < decrease < 1.0:
        raise ValueError(f"decrease={decrease} has to be a factor between 0 and 1, as 0.5")

    def init(params: Any) -> RpropState:
        return RpropState(filled(params, step), filled(params, 0.0))

    def adapt(gradient: jax.Array, old: RpropState) -> RpropState:
        sign = jnp.sign(finite_or_zero(gradient))
        product = old.sign * sign
        factor = jnp.where(product > 0, increase, jnp.where(product < 0, decrease, 1.0))
        length = clip_step(factor.astype(product.dtype) * old.step, smallest, largest)
        return RpropState(length, sign)

    return init, adapt


def coordinatewise(init: Any, rule: Rule) -> optax.GradientTransformationExtraArgs:
    """Return the transformation that applies `rule` to each leaf, see :func:`per_leaf`."""

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        return per_leaf(rule, updates, state)

    return optax.GradientTransformationExtraArgs(init, update)


def per_leaf(rule: Rule, gradient: Any, state: Any) -> tuple[Any, Any]:
    """Apply `rule` to each leaf of the gradient, in the dtype of the parameters, with its state.

    Each field of `state`, a named tuple, is a pytree like the gradient; `rule` takes and returns
    the same class with one array in each field.
    """
    leaves, tree = jax.tree.flatten(gradient)
    parts = zip(*(tree.flatten_up_to(field) for field in state), strict=True)
    kind = type(state)
    moves, states = [], []
    for leaf, part in zip(leaves, parts, strict=True):
        move, new = rule(jnp.asarray(leaf, part[0].dtype), kind(*part))
        moves.append(move)
        states.append(new)
    # Without leaves there is nothing to transpose.
    fields = (tree.unflatten(column) for column in zip(*states, strict=True))
    return tree.unflatten(moves), kind(*fields) if states else state


def filled(params: Any, value: float) -> Any:
    """Return a pytree like the parameters, with their dtypes and one value everywhere."""

    def fill(leaf: Any) -> jax.Array:
        dtype = jnp.asarray(leaf).dtype
        if not jnp.issubdtype(dtype, jnp.floating):
            raise ValueError(f"parameters are {dtype}: convert them to real floating point")
        return jnp.full(jnp.shape(leaf), value, dtype)

    return jax.tree.map(fill, params)


def at_least_single(*arrays: jax.Array) -> Any:
    """Return the widest dtype of the arrays, float32 at least; strict promotion would refuse."""
    with jax.numpy_dtype_promotion("standard"):
        return jnp.result_type(jnp.float32, *arrays)


def finite_or_zero(gradient: jax.Array) -> jax.Array:
    """Return the gradient, with zero, which means no step, where it is not finite."""
    return jnp.where(jnp.isfinite(gradient), gradient, 0)


def clip_step(step: jax.Array, smallest: float, largest: float) -> jax.Array:
    """Keep step sizes in their range and normal: XLA may flush subnormal ones to zero for good."""
    limits = jnp.finfo(step.dtype)
    low = max(smallest, float(limits.tiny))
    return jnp.clip(step, low, min(largest, float(limits.max) / 4)).astype(step.dtype)


def check_steps(step: float, smallest: float, largest: float) -> None:
    """Refuse step sizes that are not positive numbers or not in their range."""
    if not 0.0 < step < math.inf:
        raise ValueError(f"step={step} is the initial step size: take a positive finite number")
    if not 0.0 <= smallest <= step:
        raise ValueError(f"smallest={smallest} has to be between 0 and step={step}")
    if not step <= largest:
        raise ValueError(f"largest={largest} has to be at least step={step}: raise it")
