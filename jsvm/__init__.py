"""Support vector machines on JAX: fast, certified, differentiable."""

from typing import TYPE_CHECKING, Any

from jsvm import data, kernels, objectives, optim, problems, search, solvers
from jsvm.compilation import keep_compiled_programs
from jsvm.machine import Machine
from jsvm.solvers import solve

if TYPE_CHECKING:
    from jsvm import io, plots
    from jsvm.estimators import (
        PSVC,
        PSVR,
        SVC,
        SVR,
        AutoSVC,
        NuSVC,
        NuSVR,
        OneClassSVM,
        PSVMSelector,
        SmallestBall,
    )

ESTIMATORS = (
    "PSVC",
    "PSVR",
    "SVC",
    "SVR",
    "AutoSVC",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "PSVMSelector",
    "SmallestBall",
)

__all__ = [
    "PSVC",
    "PSVR",
    "SVC",
    "SVR",
    "AutoSVC",
    "Machine",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "PSVMSelector",
    "SmallestBall",
    "data",
    "io",
    "keep_compiled_programs",
    "kernels",
    "objectives",
    "optim",
    "plots",
    "problems",
    "search",
    "solve",
    "solvers",
]


def __getattr__(name: str) -> Any:
    """Import what needs scikit-learn or matplotlib on first use: importing jsvm stays light."""
    import importlib

    if name in ESTIMATORS:
        return getattr(importlib.import_module("jsvm.estimators"), name)
    if name in ("io", "plots"):
        return importlib.import_module(f"jsvm.{name}")
    raise AttributeError(f"module 'jsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
