"""scikit-learn estimators; the only part of jsvm that imports scikit-learn."""

from typing import TYPE_CHECKING, Any

from jsvm.estimators.auto_svc import AutoSVC
from jsvm.estimators.one_class import OneClassSVM, SmallestBall
from jsvm.estimators.psvm import PSVC, PSVR
from jsvm.estimators.svc import SVC, NuSVC
from jsvm.estimators.svr import SVR, NuSVR

__all__ = ["PSVC", "PSVR", "SVC", "SVR", "AutoSVC", "NuSVC", "NuSVR", "OneClassSVM"]
__all__ += ["PSVMSelector", "SmallestBall"]

if TYPE_CHECKING:
    from jsvm.estimators.psvm_selector import PSVMSelector


def __getattr__(name: str) -> Any:
    """Import PSVMSelector on first use: it needs half of scikit-learn."""
    if name == "PSVMSelector":
        from jsvm.estimators.psvm_selector import PSVMSelector

        return PSVMSelector
    raise AttributeError(f"module 'jsvm.estimators' has no attribute {name!r}")
