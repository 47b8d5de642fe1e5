"""Loops of many small operations as one machine-code kernel.

XLA on a CPU runs a ``while_loop`` as a list of kernels, and calling each of them costs more than a
short vector operation does. Asked to, it compiles a called function, loops and all, to one kernel:
a pair step on 128 variables then takes a quarter of a microsecond, and the compilation is shorter.
Under ``vmap`` the problems of a batch are solved one after the other, so that a long one does not
keep the others waiting. On other devices nothing changes.

What is in such a function runs on one core and must consist of plain array operations: no sorting,
no scatter, no decompositions, no sums along one axis of a matrix (matrix times vector is fine).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Literal, jaxpr_as_fun

from jsvm.precision import default_platform

TAGS = {"inlineable": "false", "xla_cpu_small_call": "true"}


def in_one_kernel(
    function: Callable[..., Any], otherwise: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Return the function, to be called inside ``jit``, as one that becomes one kernel on a CPU.

    Arguments and results are pytrees of arrays; the function must not use other traced values.
    On other devices `otherwise`, or the function itself, is called.
    """
    if default_platform() != "cpu":
        return function if otherwise is None else otherwise

    def called(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        traced = jax.jit(lambda *leaves: function(*jax.tree.unflatten(tree, leaves))).trace(*leaves)
        closed, variables = traced.jaxpr, traced.jaxpr.jaxpr.invars
        # XLA aborts on a parameter of such a kernel that nothing reads.
        operands = [v for eqn in closed.eqns for v in eqn.invars] + list(closed.jaxpr.outvars)
        read = {v for v in operands if not isinstance(v, Literal)}
        some = [k for k, variable in enumerate(variables) if variable in read]

        def of_those_read(*values: Any) -> Any:
            every: list[Any] = [0] * len(variables)
            for k, value in zip(some, values, strict=True):
                every[k] = value
            # A tuple, even of one: a large array as the result of all would be cut for many cores.
            return *jaxpr_as_fun(closed)(*every), jnp.int32(0)

        compiled = jax.jit(of_those_read)
        call = custom_vmap(lambda *values: set_xla_metadata(compiled(*values), **TAGS))

        @call.def_vmap
        def one_by_one(size: int, batched: list[bool], *values: Any) -> Any:
            def member(lanes: list[Any]) -> Any:
                rest = iter(lanes)
                return call(*(next(rest) if b else v for b, v in zip(batched, values, strict=True)))

            lanes = [v for b, v in zip(batched, values, strict=True) if b]
            outputs = lax.map(member, lanes)
            return outputs, jax.tree.map(lambda _: True, outputs)

        outputs = call(*(leaves[k] for k in some))[:-1]
        return jax.tree.unflatten(jax.tree.structure(traced.out_info), outputs)

    return called
