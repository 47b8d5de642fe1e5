"""The free variables of a tile, gathered in slots."""

from typing import NamedTuple

import jax.numpy as jnp

from jsvm._typing import Array, Mask, Number, Vector


class Slots(NamedTuple):
    """The problem on the slots."""

    Q: Array
    lower: Array
    upper: Array
    members: Array  # one row a group


class Point(NamedTuple):
    """α and G on the slots, and which slots are free."""

    alpha: Array
    gradient: Array
    free: Array


def limits(part: Slots, alpha: Vector, direction: Vector, free: Mask) -> Vector:
    """Return how far each slot can go before it meets a bound."""
    bound = jnp.where(direction > 0, part.upper, part.lower)
    moving = free & (direction != 0)
    distance = (bound - alpha) / jnp.where(moving, direction, 1.0)
    return jnp.where(moving, distance, jnp.inf)


def moved(part: Slots, alpha: Vector, direction: Vector, length: Number, hit: Mask) -> Vector:
    """Return α after the step; what hit a bound is there exactly."""
    inside = jnp.clip(alpha + length * direction, part.lower, part.upper)
    return jnp.where(hit, jnp.where(direction > 0, part.upper, part.lower), inside)
