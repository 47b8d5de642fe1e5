"""Support vector machines on JAX: fast, certified, differentiable."""

from typing import TYPE_CHECKING, Any

from jsvm import data, kernels, problems, solvers
from jsvm.compilation import keep_compiled_programs
from jsvm.machine import Machine
from jsvm.solvers import solve

if TYPE_CHECKING:
    from jsvm import plots
    from jsvm.estimators import SVC

__all__ = [
    "SVC",
    "Machine",
    "data",
    "keep_compiled_programs",
    "kernels",
    "plots",
    "problems",
    "solve",
    "solvers",
]


def __getattr__(name: str) -> Any:
    """Import what needs scikit-learn or matplotlib on first use: importing jsvm stays light."""
    import importlib

    if name == "SVC":
        return importlib.import_module("jsvm.estimators").SVC
    if name == "plots":
        return importlib.import_module("jsvm.plots")
    raise AttributeError(f"module 'jsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
