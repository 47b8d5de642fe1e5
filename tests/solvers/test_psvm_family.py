"""P-SVMs that share K, and the tuning of their solver."""

from typing import Any

import numpy as np
import pytest

from jsvm import problems, solve
from jsvm.solvers import PSMO, Status
from jsvm.solvers.potential import PotentialTuning, PsvmFamily

TOL = 1e-9
SMALL_TILES = PotentialTuning(whole_problem=0, first_tile=8, new_variables=2, tile_sizes=(8, 32))


def made(C=3.0):
    """Return K with unit columns, y, C and ε."""
    rng = np.random.default_rng(0)
    K = rng.normal(size=(40, 24))
    K = K - K.mean(axis=0)
    K = K / np.sqrt((K**2).sum(axis=0))
    y = rng.normal(size=40) + 2 * K[:, 0] * np.sqrt(40)
    return K, y - y.mean(), C, 0.1


class TestTuning:
    @pytest.mark.parametrize("C", [3.0, 0.2])
    def test_small_tiles_find_the_same_point(self, C):
        K, y, C, epsilon = made(C)
        problem = problems.psvm(K, y, C, epsilon)
        s = solve(problem, PSMO(tol=TOL, tuning=SMALL_TILES))
        t = solve(problem, PSMO(tol=TOL))
        assert len(s.history) > len(t.history)
        np.testing.assert_allclose(s.alpha, t.alpha, atol=1e-8)

    def test_ranges(self):
        bad: dict[str, Any]
        for bad in (
            dict(first_tile=0), dict(tile_accuracy=1.5), dict(round_seconds=np.nan),
            dict(tile_sizes=()), dict(tile_sizes=(0, 16)), dict(fetch_sizes=(32, 16)),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=next(iter(bad))):
                PotentialTuning(**bad)

    def test_is_part_of_the_configuration(self):
        assert PSMO(tuning=PotentialTuning()) == PSMO()
        assert hash(PSMO(tuning=SMALL_TILES)) != hash(PSMO())


class TestFamily:
    @pytest.mark.parametrize("block", ["newton", None])
    def test_shared_matrix_and_tile_change_no_solution(self, block):
        K, y, C, _ = made()
        data, solver = problems.DenseMatrix(K.T), PSMO("single", block, tol=TOL, tuning=SMALL_TILES)
        family, start = PsvmFamily(data, solver), None
        for target, epsilon in ((y, 0.3), (-y, 0.3), (y**2 - (y**2).mean(), 0.1), (y, 0.05)):
            problem = problems.psvm(data, target, C, epsilon)
            s, alone = family.solve(problem, start), solve(problem, solver)
            assert s.status == Status.CONVERGED
            np.testing.assert_allclose(s.alpha, alone.alpha, atol=1e-7)
            start = s.alpha
        family.release()

    def test_tolerance_of_one_problem(self):
        K, y, C, epsilon = made()
        data = problems.DenseMatrix(K.T)
        family = PsvmFamily(data, PSMO(tol=10.0))
        problem = problems.psvm(data, y, C, epsilon)
        assert family.solve(problem, tol=1e-9).violation <= 1e-9

    def test_goes_on_after_an_interruption(self):
        K, y, C, epsilon = made()
        data = problems.DenseMatrix(K.T)
        problem = problems.psvm(data, y, C, epsilon)
        family = PsvmFamily(data, PSMO(tol=TOL, tuning=SMALL_TILES))

        def interrupt(facts):
            assert family._tile is not None
            family._tile.Q.delete()  # as Ctrl-C leaves a buffer that was donated
            raise KeyboardInterrupt

        assert family.solve(problem, callback=interrupt).status == Status.INTERRUPTED
        assert family.solve(problem).status == Status.CONVERGED

    def test_another_matrix_is_an_error(self):
        K, y, C, epsilon = made()
        with pytest.raises(ValueError, match="family's data"):
            PsvmFamily(problems.DenseMatrix(K.T)).solve(problems.psvm(K, y, C, epsilon))
