"""Loops of many small operations as one machine-code kernel.

XLA on a CPU runs a ``while_loop`` as a list of kernels, and calling each of them costs more than a
short vector operation does. Asked to, it compiles a called function, loops and all, to one kernel:
a pair step on 128 variables then takes a quarter of a microsecond, and the compilation is shorter.
Kernels of one program are compiled side by side on all cores, and the time to compile one grows
faster than its length: so some kernels of moderate length are better than one of everything.
Under ``vmap`` the members of a batch run one after the other, so that a short one does not have to
wait for a long one. On other devices nothing changes.

Such a function runs on one core and must consist of plain array operations: no sorting,
no scatter, no decompositions, no sums along one axis of a matrix (matrix times vector is fine), no
sum or maximum of a vector of `LONG_REDUCTION` or more entries: XLA calls libraries for these.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.experimental.xla_metadata import set_xla_metadata
from jaxtyping import Int

from jsvm._typing import Array
from jsvm.precision import default_platform

LONG_REDUCTION = 4096  # entries from which on XLA calls a library to reduce a vector
TAGS = {"inlineable": "false", "xla_cpu_small_call": "true"}


def in_one_kernel(function: Callable[..., Any], *, reads_all: bool = False) -> Callable[..., Any]:
    """Return the function, to be called inside ``jit``, as one that becomes one kernel on a CPU.

    Arguments and results are pytrees of arrays; the function must not use other traced values.
    With `reads_all` the caller guarantees that the results depend on every leaf of the arguments;
    only then an argument can be overwritten in place.
    """
    if default_platform() != "cpu":
        return function

    def called(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        structure: Any = None

        def flat(*leaves: Any) -> tuple[Any, ...]:
            nonlocal structure
            outputs, structure = jax.tree.flatten(function(*jax.tree.unflatten(tree, leaves)))
            return *outputs, jnp.int32(0) if reads_all else _read_all(leaves)

        compiled = jax.jit(flat)
        call = custom_vmap(lambda *leaves: set_xla_metadata(compiled(*_opaque(leaves)), **TAGS))

        @call.def_vmap
        def one_by_one(size: int, batched: list[bool], *leaves: Any) -> Any:
            def member(lanes: list[Any]) -> Any:
                rest = iter(lanes)
                return call(*(next(rest) if b else v for b, v in zip(batched, leaves, strict=True)))

            lanes = [v for b, v in zip(batched, leaves, strict=True) if b]
            outputs = lax.map(member, lanes)
            return outputs, jax.tree.map(lambda _: True, outputs)

        outputs = call(*map(jnp.asarray, leaves))
        return jax.tree.unflatten(structure, outputs[:-1])

    return called


def _opaque(leaves: Sequence[Array]) -> list[Array]:
    """Hide from XLA that a leaf is a constant.

    It would move the constant into the function, and then abort on the parameter that is left over.
    A large array is never a constant, and a barrier would copy it.
    """
    return [v if v.size > LONG_REDUCTION else lax.optimization_barrier(v) for v in leaves]


def _read_all(leaves: Sequence[Array]) -> Int[Array, ""]:
    """Return zero, computed from all the leaves: XLA aborts on a parameter that nothing reads.

    This also reads what XLA would find dead, such as the start of a value that a loop overwrites.
    As a further result it makes the result a tuple: XLA would split a single large array over many
    cores, which is not possible inside a kernel.
    """
    zeros = [(leaf.reshape(-1)[0] == leaf.dtype.type(0)).astype(jnp.int32) for leaf in leaves]
    return jnp.minimum(sum(zeros, jnp.int32(0)), 0)
