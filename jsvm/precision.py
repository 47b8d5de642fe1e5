"""Which floating-point type runs, and the scope in which JAX allows float64.

Importing jsvm sets no JAX flag. Code that works on concrete numbers (estimators, ``solve``, the
command line) opens :func:`scope` around its work; kernels, problems and everything that may be
traced follow the dtype of their input and the caller's setting.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

try:
    from jax.extend.core import find_top_trace
except ImportError:  # JAX 0.8
    from jax.core import find_top_trace  # pyright: ignore[reportAttributeAccessIssue]

TRANSFER_GUARDS = [
    f"jax_transfer_guard_{way}" for way in ("host_to_device", "device_to_device", "device_to_host")
]
DOUBLE = np.dtype("float64")
PROCESS: list[int] = []  # the one that has used JAX here first


def working_dtype(dtype: Any = None) -> np.dtype:
    """Return the dtype to run in: the one asked for, or float64 on a CPU and float32 elsewhere.

    Examples
    --------
    >>> str(working_dtype("float32"))
    'float32'
    """
    if dtype is None:
        return np.dtype("float64" if default_platform() == "cpu" else "float32")
    chosen = np.dtype(dtype)
    if chosen not in (np.dtype("float32"), np.dtype("float64")):
        raise ValueError(f"dtype={dtype!r} is not supported; use 'float32', 'float64' or None")
    return chosen


def scope(dtype: np.dtype) -> AbstractContextManager[Any]:
    """Let JAX work in `dtype`, whatever the caller has forbidden his own programs.

    Opens ``jax.enable_x64`` for float64. Implicit transfers and promotions of types, if they are
    errors outside, are allowed inside.
    """
    _check_process()
    settings: Any = jax.config
    needed = []  # a scope inside another needs none: asking costs less than entering
    if dtype == DOUBLE and not settings.jax_enable_x64:
        needed.append(jax.enable_x64(True))
    if any(getattr(settings, guard) not in (None, "allow") for guard in TRANSFER_GUARDS):
        needed.append(jax.transfer_guard("allow"))
    if settings.jax_numpy_dtype_promotion != "standard":
        needed.append(jax.numpy_dtype_promotion("standard"))
    return _all(needed) if len(needed) > 1 else needed[0] if needed else nullcontext()


@contextmanager
def _all(contexts: list[Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


def _check_process() -> None:
    """Raise RuntimeError in a fork of the process that has used JAX: it would hang."""
    process = os.getpid()
    if not PROCESS:
        PROCESS.append(process)
    if PROCESS[0] != process:
        raise RuntimeError(
            f"process {process} is a fork of process {PROCESS[0]}, in which jsvm has run: JAX's "
            "threads do not survive a fork; use multiprocessing.get_context('spawn') or "
            "('forkserver'), or joblib's default backend 'loky'"
        )


def is_traced(*trees: Any) -> bool:
    """Tell whether any leaf is a tracer, that is, inside a JAX transformation."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


def at_once() -> AbstractContextManager[Any]:
    """Evaluate what follows now, even while JAX traces a function around it."""
    outside = type(find_top_trace(())).__name__ == "EvalTrace"
    return nullcontext() if outside else jax.ensure_compile_time_eval()


def default_platform() -> str:
    """Return the platform on which the caller's programs run: 'cpu', 'gpu' and so on."""
    device: Any = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if device is None:
        return jax.default_backend()
    return device if isinstance(device, str) else device.platform


def default_device() -> Any:
    """Return the device on which the caller's programs run."""
    device: Any = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if device is None or isinstance(device, str):
        return jax.local_devices(backend=device)[0]
    return device
