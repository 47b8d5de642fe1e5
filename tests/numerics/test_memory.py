"""Memory that is used again: what is kept, and that nobody sees what was in it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jsvm import SVC, kernels, problems, solve
from jsvm.data import chess_board
from jsvm.numerics import memory
from jsvm.numerics.memory import MemoryPool

SINGLE = np.dtype("float32")
on_cpu = pytest.mark.skipif(jax.default_backend() != "cpu", reason="others have allocators")


@on_cpu
def test_an_array_is_handed_out_once_and_by_its_shape_and_type():
    spare = MemoryPool(limit=10**6)
    spare.give_back(jnp.full((2, 3), 7.0, SINGLE))
    assert spare.borrow((3, 2), SINGLE)[0, 0] == 0.0  # another shape: new
    assert spare.borrow((2, 3), np.dtype("int32"))[0, 0] == 0
    assert spare.borrow((2, 3), SINGLE)[0, 0] == 7.0
    assert spare.borrow((2, 3), SINGLE)[0, 0] == 0.0  # it is gone


@on_cpu
def test_what_was_given_first_goes_first():
    spare = MemoryPool(limit=100)
    for value in range(3):
        spare.give_back(jnp.full(10, float(value), SINGLE))
    assert spare.bytes == 80
    assert [float(spare.borrow((10,), SINGLE)[0]) for _ in range(3)] == [1.0, 2.0, 0.0]


@on_cpu
def test_an_array_larger_than_the_limit_is_not_kept():
    spare = MemoryPool(limit=100)
    spare.give_back(jnp.zeros(26, SINGLE))
    assert spare.bytes == 0


@on_cpu
def test_an_array_that_is_gone_is_not_kept():
    spare, array = MemoryPool(limit=100), jnp.zeros(3, SINGLE)
    array.delete()
    spare.give_back(array)
    assert spare.bytes == 0


def hard(seed, n):
    X, y = chess_board(4, 2, size=n, key=seed)
    return problems.c_svc((kernels.RBF(0.5), np.asarray(X, float)), np.asarray(y, float), 10.0)


@pytest.mark.parametrize("n", [250, 1500])
def test_a_fit_in_memory_used_before_gives_the_same_bits(n, monkeypatch):
    monkeypatch.setattr(memory.POOL, "limit", 0)
    alone = solve(hard(1, n)).alpha
    monkeypatch.setattr(memory.POOL, "limit", 2**28)
    solve(hard(0, n))  # leaves its memory
    assert memory.POOL.bytes > 0
    np.testing.assert_array_equal(solve(hard(1, n)).alpha, alone)


def test_what_is_kept_stays_within_its_limit(monkeypatch):
    monkeypatch.setattr(memory.POOL, "limit", 2**20)
    solve(hard(0, 1500))
    assert memory.POOL.bytes <= 2**20


def test_solutions_do_not_change_when_their_memory_would_be_used_again():
    first = solve(hard(0, 250))
    alpha = first.alpha.copy()
    solve(hard(1, 250))
    np.testing.assert_array_equal(first.alpha, alpha)


def test_an_interrupted_fit_leaves_memory_in_order():
    X, y = chess_board(4, 2, size=1500, key=0)
    whole = SVC(C=10.0, gamma=0.5).fit(X, y)
    with pytest.warns(match="interrupted"):
        SVC(C=10.0, gamma=0.5, callback=lambda facts: True).fit(X, y)
    again = SVC(C=10.0, gamma=0.5).fit(X, y)
    np.testing.assert_array_equal(again.dual_coef_, whole.dual_coef_)
