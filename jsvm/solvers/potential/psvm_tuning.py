"""Tuning of the P-SVM solvers: every number that decides about speed, not about the answer."""

from dataclasses import dataclass

from jsvm.solvers.tuning import check_ranges, tuned

# What to run before changing a number.
TILES, STEPS = "python -m bench.psvm", "python -m bench.psvm_variants"
ROUNDING = "rounding: the precision of the arithmetic, not a benchmark"

MB = 2**20
TILE_SIZES = (16, 32, 64, 128, 192, 256, 320, 384, 448, 512, 768, 1024, 1280, 1536, 2048)
FETCH_SIZES = (16, 32, 64, 96, 128, 192, 256)
BLOCK_SIZES = (32, 128, 512, 2048, 8192, 32768)


@dataclass(frozen=True)
class PotentialTuning:
    """Tuning of :class:`PSMO`; each field has `unit`, `origin` and `range` in its metadata.

    Examples
    --------
    >>> PotentialTuning(first_tile=64).tile_size(65)
    128
    >>> from dataclasses import fields
    >>> next(f.metadata["unit"] for f in fields(PotentialTuning) if f.name == "first_tile")
    'variables'
    """

    # Tiles. A problem up to `whole_problem` is one tile; a larger one starts with `first_tile`, and
    # each round adds `new_variables`, or `new_share` of the non-zero ones if that is more.
    whole_problem: int = tuned(256, "variables", TILES, 0, 8192)
    first_tile: int = tuned(128, "variables", TILES, 1, 8192)
    new_variables: int = tuned(64, "variables", TILES, 1, 8192)
    new_share: float = tuned(0.3, "of the non-zero variables", TILES, 0.0, 10.0)
    # How far a tile is solved: to a part of the violation, not further than a part of the
    # tolerance; to the end from `finish_from` on, if it holds all variables that violate.
    tile_accuracy: float = tuned(0.2, "of the violation", TILES, 0.0, 0.99)
    tile_accuracy_limit: float = tuned(0.5, "of the tolerance", TILES, 0.0, 0.99)
    finish_from: float = tuned(100.0, "tolerances", TILES, 1.0, 1e12)
    newton_steps_per_round: int = tuned(40, "Newton steps", TILES, 1, 100_000)
    # After the tolerance is met: as many rounds, each to this target, until one gains too little.
    polishing_rounds: int = tuned(3, "rounds", TILES, 0, 100)
    polishing_target: float = tuned(1e-11, "of the largest gradient", ROUNDING, 0.0, 1.0)
    polishing_gain: float = tuned(0.5, "of the violation before", TILES, 0.0, 1.0)
    # A round without progress lowers neither the violation nor the objective by these parts.
    idle_rounds: int = tuned(8, "rounds", TILES, 1, 1000)
    progress: float = tuned(0.9, "of the violation before", TILES, 0.0, 1.0)
    least_decrease: float = tuned(1e-13, "of the objective", ROUNDING, 0.0, 1.0)

    # Row objects. Few sizes, so that few programs are compiled; multiples of the step beyond.
    tile_sizes: tuple[int, ...] = tuned(TILE_SIZES, "slots", TILES, 1, 65536)
    tile_size_step: int = tuned(512, "slots", TILES, 1, 65536)
    fetch_sizes: tuple[int, ...] = tuned(FETCH_SIZES, "row objects", TILES, 1, 65536)
    # More than this are not gathered for Kα: one product with all of them is quicker.
    gathered_share: float = tuned(0.2, "of the row objects", TILES, 0.0, 1.0)
    # From here on XLA transposes a matrix faster than NumPy.
    transposed_by_xla: int = tuned(2**20, "entries of K", TILES, 0, 2**62)

    # Newton (semismooth.py). The width σ starts at `first_width`, is multiplied by `widening` after
    # a quick centre, divided by its square after one that took too many steps.
    first_width: float = tuned(10.0, "over the mean diagonal of Q", TILES, 1e-6, 1e12)
    widening: float = tuned(4.0, "factor", TILES, 1.0, 1e6)
    widest: float = tuned(0.1, "over the rounding of Q", ROUNDING, 1e-6, 1.0)
    quick_centre: int = tuned(6, "Newton steps", TILES, 0, 1000)
    slow_centre: int = tuned(25, "Newton steps", TILES, 1, 1000)
    centre_accuracy: float = tuned(0.2, "of the move or the tolerance", TILES, 0.0, 1.0)
    idle_centres: int = tuned(6, "centres", TILES, 1, 1000)
    least_centre_decrease: float = tuned(1e-4, "of the objective", TILES, 0.0, 1.0)
    halvings: int = tuned(12, "step lengths that are tried", TILES, 1, 60)
    sufficient_decrease: float = tuned(1e-4, "of the slope", TILES, 0.0, 0.5)
    sum_rounding: float = tuned(4.0, "units of rounding of a sum", ROUNDING, 0.0, 1e6)

    # The SMO of the papers. A call of its loop takes at most so many steps, a round so many
    # seconds; a pair with 1 − cos² up to `flat_pair` is moved one variable at a time.
    steps_per_call: int = tuned(100_000, "steps", STEPS, 1, 10**9)
    round_seconds: float = tuned(0.2, "seconds", STEPS, 0.0, 3600.0)
    confirmations: int = tuned(5, "fresh gradients that contradict", ROUNDING, 0, 1000)
    block_sizes: tuple[int, ...] = tuned(BLOCK_SIZES, "variables", STEPS, 1, 2**20)
    flat_pair: float = tuned(1e-12, "1 − cos²", ROUNDING, 0.0, 1.0)

    # Folds of up to so many variables are solved together, as many as fit the memory.
    together_variables: int = tuned(300, "variables", "python -m bench.psvm_matrix", 0, 8192)
    together_bytes: int = tuned(256 * MB, "bytes", "memory of a small machine", 1, 2**50)

    def __post_init__(self) -> None:
        check_ranges(self)
        for name in ("tile_sizes", "fetch_sizes", "block_sizes"):
            value = getattr(self, name)
            if sorted(value) != list(value):
                raise ValueError(f"{name}={value!r} must be in ascending order")

    def tile_size(self, count: int) -> int:
        """Return the number of slots of a tile for so many variables."""
        step = self.tile_size_step
        return next((size for size in self.tile_sizes if count <= size), -(-count // step) * step)
