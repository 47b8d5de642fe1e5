"""The tuning constants of the SMO solver: what was measured to be fast, not what makes it right.

Any value within its range gives a correct solution; another one costs time. Benchmarks are named by
module: ``python -m bench.grid`` and so on. "Table 7.1" is the set of problems of Glasmachers (2008)
in ``bench.solvers``; image, king-rook, MNIST, banana, adult and titanic are single ones of it. Run
them before and after a change, old and new values in turns.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any


def tuned(
    default: Any, unit: str, origin: str, least: float | int = 0, most: float | int = float("inf")
) -> Any:
    """Return a field; its origin is a trade-off or a benchmark, its range that of every number."""
    metadata = {"unit": unit, "origin": origin, "range": (least, most)}
    return dataclasses.field(default=default, metadata=metadata)


def check_ranges(tuning: Any) -> None:
    """Raise ValueError if a field of a tuning is outside of its range."""
    for field in dataclasses.fields(tuning):
        value, (least, most) = getattr(tuning, field.name), field.metadata["range"]
        numbers = value if isinstance(value, tuple) else (value,)
        if not numbers or not all(least <= number <= most for number in numbers):
            raise ValueError(f"{field.name}={value!r} must be from {least} to {most}")


@dataclass(frozen=True)
class Tuning:
    """Constants of :class:`jsvm.solvers.SMO`; each field has unit, origin and range as metadata.

    Examples
    --------
    >>> Tuning(largest_whole=0).largest_whole
    0
    """

    # Which level solves a problem.
    largest_whole: int = tuned(1280, "variables", "one tile up to here: Table 7.1", -1)
    largest_traced: int = tuned(8192, "variables", "jit and vmap hold Q: half a gigabyte", 1)
    rough_sweeps: int = tuned(200, "pair steps per variable", "in float32, then float64: safety", 1)
    traced_slots: int = tuned(256, "variables", "slots under jit: bench.derivatives", 2)
    batch_slots: int = tuned(256, "variables", "slots under vmap: bench.grid", 2)

    # One tile: looks of the host, and number of slots of a block step.
    turn_work: float = tuned(3e8, "pair steps x variables", "a second between two looks", 1)
    shortest_turn: int = tuned(1000, "pair steps", "a look of the host costs a millisecond", 1)
    slots: tuple[int, ...] = tuned(
        (128, 256, 512, 1024, 2048, 4096), "variables", "compile time", 2
    )
    few_variables: int = tuned(768, "variables", "above it not the fewest slots: one program less")
    slots_per_free: float = tuned(1.2, "slots per free variable", "room to grow: Table 7.1", 1)

    # One tile: when a fresh gradient is computed, and when to stop.
    look_steps: int = tuned(10_000, "pair steps", "rounding errors of G between two looks", 1)
    look_sweeps: int = tuned(20, "pair steps per variable", "the same, for large tiles", 1)
    max_attempts: int = tuned(20, "fresh gradients", "contradictions of the running one: safety", 1)
    vain_looks: int = tuned(6, "fresh gradients", "in a row without a better point: rounding", 1)
    polish_turns: int = tuned(6, "turns", "after the gap has passed: digits against time", 1)
    polish_ulps: float = tuned(256.0, "units in the last place", "polishing ends: rounding of G", 1)

    # The block step.
    max_factors: int = tuned(8, "factorisations", "of one block step: Table 7.1", 1)
    max_hits: int = tuned(32, "hits of bounds", "served by one factor: rows of W in cache", 1)
    max_refinements: int = tuned(4, "Newton steps", "with one factor at the end: rounding")
    ridge_that_matters: float = tuned(1e5, "least ridges", "a factor for every hit: rounding", 1)
    ridge_growth: float = tuned(100.0, "factor", "of the ridge, where Cholesky fails", 1)
    max_ridges: int = tuned(12, "attempts", "until Q plus ridge is positive definite: safety", 1)
    largest_in_kernel: int = tuned(256, "slots", "inverse by one kernel of machine code: image")
    largest_explicit: int = tuned(512, "slots", "above it LAPACK's threads pay: king-rook")
    sweep: int = tuned(8, "rows", "swept at once in a kernel: vector registers", 1)
    wide_sweep: int = tuned(64, "rows", "swept at once by matrix products: Table 7.1", 1)

    # Many tiles: sizes.
    tiles: tuple[int, ...] = tuned(
        (512, 768, 1024, 1536, 2048, 3072, 4096, 8192), "variables", "compile time", 2
    )
    large_tile: int = tuned(4096, "variables", "above only if the free ones need it: memory", 2)
    tile_slots: tuple[int, ...] = tuned((128, 256), "free variables", "block steps: Table 7.1", 1)
    fewest_newcomers: int = tuned(256, "variables", "places for violators: rounds, Table 7.1", 1)
    largest_newton: int = tuned(2048, "free variables", "one Newton step on all: Table 7.1", 2)
    newton_slot_step: int = tuned(256, "slots", "of such a step: few programs", 1)

    # Many tiles: targets of a round.
    tile_fraction: float = tuned(0.1, "of the gap", "to which a tile is solved: Table 7.1", 0, 1)
    finishing_gap: float = tuned(300.0, "times tol", "tile of all violators to rounding: Table 7.1")
    newton_gap: float = tuned(1e-3, "gap", "first Newton step on many free variables: king-rook")
    rough_gap: float = tuned(1e-4, "of the largest linear term", "tiles of float32 above: MNIST")
    worst_share: float = tuned(
        0.25, "of the newcomers", "the worst; others any: banana, adult", 0, 1
    )
    many_features: int = tuned(100, "features", "ignore violators below a tile's target: MNIST", 1)
    polish_rounds: int = tuned(4, "rounds", "after the gap has passed: digits against time")
    patience: int = tuned(20, "rounds", "without progress before G is refreshed: safety")
    max_refreshes: int = tuned(20, "fresh gradients", "that contradict the running one: safety", 1)

    # Kernel rows.
    row_blocks: tuple[int, ...] = tuned(
        (256, 128, 64, 32, 16), "rows", "at once, descending: compile time", 1
    )
    block_bytes: int = tuned(2**23, "bytes", "of a block: more would be fresh memory", 1)
    large_block_bytes: int = tuned(2**25, "bytes", "where blocks replace each other: holes", 1)
    fewest_slabs: int = tuned(4, "slabs", "into which a small cache is divided", 1)
    slab_rows: int = tuned(512, "rows", "of a slab that is filled block by block", 1)
    slab_bytes: int = tuned(2**25, "bytes", "of such a slab", 1)
    full_share: float = tuned(0.6, "of a block", "from there it is computed whole", 0, 1)
    expensive_features: int = tuned(400, "features", "keep rows, spend rounds from there: MNIST")
    roomy_share: float = tuned(0.5, "of the cache", "in which expensive rows are kept", 0, 1)
    strip_rows: int = tuned(1024, "rows", "of a tile's matrix computed at once: temporaries", 1)
    exact_bytes: float = tuned(2.0**28, "bytes", "float64 rows where the solver has float32", 1)

    # Copies of examples.
    fewest_copied_entries: int = tuned(100_000, "entries of Q", "saved by merging copies: titanic")
    smallest_copied_share: float = tuned(0.01, "of the examples", "the same: titanic", 0, 1)

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def most_in_kernel(self) -> int:
        """Slots of a block step that one kernel may hold: a kernel cannot call LAPACK."""
        return min(self.largest_in_kernel, self.largest_explicit)


DEFAULT = Tuning()
