"""Transformations that treat every coordinate by itself, and the checks that they share."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

Rule = Callable[[jax.Array, Any], tuple[jax.Array, Any]]


def coordinatewise(init: Any, rule: Rule) -> optax.GradientTransformationExtraArgs:
    """Return the transformation that applies `rule` to each leaf, see :func:`per_leaf`."""

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        return per_leaf(rule, updates, state)

    return optax.GradientTransformationExtraArgs(init, update)


def per_leaf(rule: Rule, gradient: Any, state: Any) -> tuple[Any, Any]:
    """Apply `rule` to each leaf of the gradient with its part of the state.

    Each field of `state`, a named tuple, is a pytree with the structure of the gradient; `rule`
    takes and returns the same class with one array in each field. The gradient is converted to
    the dtype of the first field, which is that of the parameters.
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


def finite_or_zero(gradient: jax.Array) -> jax.Array:
    """Return the gradient, with zero, which means no step, where it is not finite."""
    return jnp.where(jnp.isfinite(gradient), gradient, 0)


def clip_step(step: jax.Array, smallest: float, largest: float) -> jax.Array:
    """Keep step sizes in their range, and off zero, subnormal numbers and infinity.

    XLA flushes subnormal numbers to zero on some devices, and a step of zero stays zero.
    """
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
