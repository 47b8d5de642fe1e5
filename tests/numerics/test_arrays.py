"""NumPy stays NumPy in float64, JAX stays JAX; padding, keys, checks and equal rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jsvm import kernels
from jsvm.numerics.arrays import (
    LARGEST_MATRIX,
    as_floating,
    as_key,
    bucket,
    cast,
    check_finite,
    check_size,
    equal_rows,
    in_full_precision,
    namespace,
    product,
    repeat_first,
    widened,
)
from jsvm.numerics.memory import ALIGNMENT, aligned_empty


def test_one_jax_array_makes_a_computation_jax():
    assert namespace(np.ones(2), 3.0, None) is np
    assert namespace({"a": np.ones(2), "b": (jnp.ones(2),)}) is jnp


def test_whole_numbers_become_floating_and_others_keep_their_type():
    assert as_floating([1, 2]).dtype == np.float64
    assert as_floating(np.ones(2, np.float32)).dtype == np.float32
    single = jnp.ones(2, jnp.float32)
    assert as_floating(single) is single
    assert jnp.issubdtype(as_floating(jnp.arange(3)).dtype, jnp.floating)


def test_numpy_data_keep_their_precision_without_a_flag():
    value = np.array([1.0 + 1e-12])
    kept = in_full_precision(lambda: jnp.asarray(value) - 1.0, value)
    assert isinstance(kept, np.ndarray)
    np.testing.assert_array_equal(kept, value - 1.0)
    assert isinstance(in_full_precision(lambda: jnp.ones(1), jnp.ones(1)), jax.Array)


@pytest.mark.parametrize("n", [1, 16, 17, 256, 257, 2048, 2049, 100_000])
def test_a_bucket_holds_its_size_and_wastes_little(n):
    size = bucket(n)
    assert size >= n
    assert bucket(size) == size
    assert size % 16 == 0
    share = 1 if n <= 256 else 1 / 2 if n <= 512 else 1 / 4 if n <= 2048 else 1 / 16
    assert size - n < max(64, share * n)


@pytest.mark.parametrize("values", [np.array([7, 3]), np.array([[7.0, 1.0], [3.0, 2.0]])])
def test_padding_repeats_the_first_row_or_index(values):
    padded = repeat_first(values, 5)
    np.testing.assert_array_equal(padded, values[[0, 1, 0, 0, 0]])
    assert padded.dtype == values.dtype
    assert repeat_first(values, 2) is values


def test_features_are_added_only_where_a_kernel_ignores_them():
    X = np.ones((2, 5))
    wide = widened(kernels.RBF(1.0), X)
    np.testing.assert_array_equal(wide, np.pad(X, ((0, 0), (0, 3))))
    assert widened(kernels.ARD(np.ones(5)), X) is X


def test_only_floating_numbers_are_cast():
    single = np.dtype("float32")
    assert cast(np.ones(2), single).dtype == single
    assert cast(np.arange(2), single).dtype == np.arange(2).dtype
    assert isinstance(cast(jnp.ones(2), single), jax.Array)


def test_a_seed_is_as_good_as_its_key():
    key = jax.random.key(3)
    assert as_key(key) is key
    assert jnp.array_equal(jax.random.key_data(as_key(np.int64(3))), jax.random.key_data(key))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(bad):
    check_finite(np.ones((2, 2)))
    check_finite(jnp.ones((2, 2)))
    with pytest.raises(ValueError, match="NaN or infinity"):
        check_finite(np.array([1.0, bad]))


def test_a_matrix_too_large_for_memory_is_refused():
    size = int(np.sqrt(LARGEST_MATRIX / 8))
    check_size(size, np.dtype("float64"))
    with pytest.raises(ValueError, match="block=True"):
        check_size(size + 1, np.dtype("float64"))


def test_equal_rows_are_found_across_matrices():
    A = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [1.0, 2.0]])
    label = np.array([[0.0], [0.0], [0.0], [1.0]])
    found = equal_rows(A, label, fewest=1)
    assert found is not None
    first, kind = found
    assert len(first) == 3
    assert kind[0] == kind[2]
    np.testing.assert_array_equal(A[first][kind], A)
    np.testing.assert_array_equal(label[first][kind], label)
    assert equal_rows(A, label, fewest=2) is None


def test_memory_is_aligned():
    for shape in ((3, 5), (1, 1), (17, 31)):
        array = aligned_empty(shape, np.float32)
        assert array.shape == shape
        assert array.ctypes.data % ALIGNMENT == 0


def test_a_product_is_in_full_precision(rng):
    A, B = (rng.normal(size=(4, 4)).astype(np.float32) for _ in range(2))
    np.testing.assert_allclose(product(A, B), A @ B, rtol=1e-5)
