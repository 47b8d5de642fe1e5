"""The three sources of one matrix give the same parts and the same updates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jsvm import kernels, problems
from jsvm.solvers.canonical import Layout
from jsvm.solvers.tiles.sources import HostSource, KernelSource, MatrixSource, source_of

DOUBLE = np.dtype("float64")
X = np.random.default_rng(0).normal(size=(20, 3))
KERNEL = kernels.RBF(0.5)


def plain(A, B):
    return np.exp(-0.5 * ((np.asarray(A)[:, None] - np.asarray(B)[None]) ** 2).sum(-1))


HESSIANS = {
    KernelSource: (KERNEL, X),
    HostSource: (kernels.Function(plain, on_host=True), X),
    MatrixSource: plain(X, X),
}


def add_part(target, part, factor):
    return target + factor * part


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", HESSIANS)
@pytest.mark.parametrize("shuffled", [False, True])
def test_every_source_gives_the_parts_of_its_matrix(kind, shuffled):
    program = problems.one_class(HESSIANS[kind], 0.5)
    layout = Layout.of(program, shuffled)
    source = source_of(program.hessian, layout, DOUBLE)
    assert type(source) is kind
    assert (source.matrix is None) == (kind is not MatrixSource)
    some, others = layout.order[[3, 7, 7]], layout.order
    expected = plain(X[[3, 7, 7]], X)
    np.testing.assert_allclose(source.part(some, others), expected, rtol=1e-12)
    updated = source.apply(add_part, jnp.ones((3, 20)), some, others, 2.0)
    np.testing.assert_allclose(updated, 1.0 + 2.0 * expected, rtol=1e-12)
    rows = source.apply(add_part, jnp.zeros((3, layout.examples)), some, None, 1.0)
    np.testing.assert_allclose(rows[:, layout.order], expected, rtol=1e-12)
    source.release()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", HESSIANS)
def test_the_target_of_an_update_is_donated(kind):
    program = problems.one_class(HESSIANS[kind], 0.5)
    source = source_of(program.hessian, Layout.of(program, shuffled=False), DOUBLE)
    some, target = np.arange(20), jnp.zeros((20, 20))
    with jax.debug_nans(False):  # which keeps all arguments
        source.apply(add_part, target, some, some, 1.0)
    assert target.is_deleted()
