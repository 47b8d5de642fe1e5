"""The point on the host, what violates there, and which variables to move next."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jsvm.precision import scope
from jsvm.problems import QuadraticProgram
from jsvm.solvers.canonical import Layout


@dataclass
class Vectors:
    """The program without its matrix, and the point, all in float64 on the host."""

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    groups: np.ndarray
    totals: np.ndarray
    alpha: np.ndarray
    gradient: np.ndarray

    @classmethod
    def of(cls, program: QuadraticProgram, layout: Layout, start: np.ndarray | None) -> "Vectors":
        """Return a program in its layout at a feasible start; the gradient is not yet computed."""
        if start is None:
            with scope(np.dtype("float64")):
                start = np.asarray(program.feasible_point())
        linear, *others = layout.vectors(program, float)
        return cls(linear, *others, alpha=layout.spread(start), gradient=linear.copy())

    @property
    def objective(self) -> float:
        """½αᵀQα − lᵀα."""
        return float(-0.5 * np.dot(self.alpha, self.linear + self.gradient))

    def members(self, group: int) -> Any:
        """Return the mask of the variables of a group; True if there is only one group."""
        return True if len(self.totals) == 1 else self.groups == group


class View(NamedTuple):
    """The violations at the point, and which variables they concern."""

    gap: float
    free: np.ndarray  # indices
    distance: np.ndarray  # G − λ, with λ in the middle of what is asked of it
    outside: np.ndarray  # indices of the variables at a bound that violate most
    near: np.ndarray  # other variables at a bound, which violate if G moves by the gap


def look(v: Vectors, level: float = 0.0) -> View:
    """Measure the violations; `level`, in units of half the gap, is where `outside` begins."""
    can_up, can_down = v.alpha < v.upper, v.alpha > v.lower
    distance, gap = np.empty_like(v.gradient), -np.inf
    for group in range(len(v.totals)):
        inside = slice(None) if len(v.totals) == 1 else v.members(group)
        G = v.gradient[inside]
        highest = np.where(can_up[inside], G, -np.inf).max()
        lowest = np.where(can_down[inside], G, np.inf).min()
        gap = max(gap, highest - lowest)
        ends = [end for end in (highest, lowest) if np.isfinite(end)]
        distance[inside] = G - (sum(ends) / len(ends) if ends else 0.0)
    violation = np.where(can_up, distance, -distance)
    bounded = can_up != can_down
    outside = bounded & (violation > 0.5 * level * gap)
    near = bounded & ~outside & (violation > -gap)
    free, outside, near = (np.flatnonzero(mask) for mask in (can_up & can_down, outside, near))
    return View(gap, free, distance, outside, near)


def choose(view: View, size: int, worst: float, random: np.random.Generator) -> np.ndarray:
    """Return at most `size` variables: the free ones, violators of both sides, and what is near.

    Of the places for violators a part, `worst`, is for the worst of them, the others are for any.
    The worst ones are often neighbours of each other, of which one would do. A quarter of the tile
    is for violators if there are so many; where the free ones do not fit the rest, those farthest
    from λ are taken. Places that are left are for the variables that will violate next.
    """
    free, outside, near = view.free, view.outside, view.near
    most = max(3 * size // 4, size - len(outside))
    if len(free) > most:
        free = free[_largest(np.abs(view.distance[free]), most)]
    room = size - len(free)
    ups, downs = outside[view.distance[outside] > 0], outside[view.distance[outside] < 0]
    ups = ups[_some(view.distance[ups], max(room // 2, room - len(downs)), worst, random)]
    downs = downs[_some(-view.distance[downs], room - len(ups), worst, random)]
    near = near[_largest(-np.abs(view.distance[near]), room - len(ups) - len(downs))]
    return np.concatenate([free, ups, downs, near])


def _some(
    values: np.ndarray, count: int, largest: float, random: np.random.Generator
) -> np.ndarray:
    """Return the places of `count` values, that part of them the largest, in no order."""
    if len(values) <= count:
        return np.arange(len(values))
    top = _largest(values, math.ceil(largest * count))
    others = np.ones(len(values), bool)
    others[top] = False
    any_of_them = random.choice(np.flatnonzero(others), count - len(top), replace=False)
    return np.concatenate([top, any_of_them])


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the `count` largest values, in no order."""
    others = len(values) - count
    return np.arange(len(values)) if others <= 0 else np.argpartition(values, others - 1)[others:]
