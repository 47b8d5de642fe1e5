"""scikit-learn estimators; the only part of jsvm that imports scikit-learn."""

from jsvm.estimators.auto_svc import AutoSVC
from jsvm.estimators.one_class import OneClassSVM, SmallestBall
from jsvm.estimators.psvm import PSVC, PSVR
from jsvm.estimators.psvm_selector import PSVMSelector
from jsvm.estimators.svc import SVC, NuSVC
from jsvm.estimators.svr import SVR, NuSVR

__all__ = ["PSVC", "PSVR", "SVC", "SVR", "AutoSVC", "NuSVC", "NuSVR", "OneClassSVM"]
__all__ += ["PSVMSelector", "SmallestBall"]
