"""Support vector machines on JAX: fast, certified, differentiable."""
# ruff: noqa: F405 - the estimators of __all__ come from the star import, and from __getattr__

from typing import TYPE_CHECKING, Any

from jsvm import kernels, problems, solvers
from jsvm.machine import Machine
from jsvm.programs import keep_compiled_programs
from jsvm.solvers import solve

if TYPE_CHECKING:
    from jsvm import data, io, objectives, optim, plots, search
    from jsvm.ahead import warm_up
    from jsvm.estimators import *  # noqa: F403

    __version__: str

__all__ = ["PSVC", "PSVR", "SVC", "SVR", "AutoSVC", "NuSVC", "NuSVR", "OneClassSVM"]
__all__ += ["PSVMSelector", "SmallestBall"]  # the estimators
__all__ += ["Machine", "__version__", "data", "io", "keep_compiled_programs", "kernels"]
__all__ += ["objectives", "optim", "plots", "problems", "search", "solve", "solvers", "warm_up"]


def __getattr__(name: str) -> Any:
    """Import the rest on first use: importing jsvm stays light."""
    import importlib

    if name == "__version__":
        return _version()
    if name in ("data", "io", "objectives", "optim", "plots", "search"):
        return importlib.import_module(f"jsvm.{name}")
    if name == "warm_up":
        return importlib.import_module("jsvm.ahead").warm_up
    if name in __all__:  # the only names left are those of estimators
        return getattr(importlib.import_module("jsvm.estimators"), name)
    raise AttributeError(f"module 'jsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    """Return the version of the installed package, '0+unknown' if jsvm is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("jsvm")
    except PackageNotFoundError:
        return "0+unknown"
