"""scikit-learn estimators; the only part of jsvm that imports scikit-learn."""

from jsvm.estimators.auto_svc import AutoSVC
from jsvm.estimators.nu_svc import NuSVC
from jsvm.estimators.one_class import OneClassSVM, SmallestBall
from jsvm.estimators.psvc import PSVC
from jsvm.estimators.psvm_selector import PSVMSelector
from jsvm.estimators.psvr import PSVR
from jsvm.estimators.svc import SVC
from jsvm.estimators.svr import SVR, NuSVR

__all__ = [
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
]
