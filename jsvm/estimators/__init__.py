"""scikit-learn estimators; the only part of jsvm that imports scikit-learn."""

from jsvm.estimators.svc import SVC

__all__ = ["SVC"]
