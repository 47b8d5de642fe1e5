"""scikit-learn's own checks, all of them, with no expected failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from jsvm import (
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

QUICK = [SVC(), SVR()]
POTENTIAL = [PSVC(), PSVR(), PSVMSelector()]
ESTIMATORS = [*QUICK, NuSVC(), NuSVR(), OneClassSVM(), SmallestBall(), *POTENTIAL]
VARIANTS = [
    AutoSVC(budget=10, random_state=0),
    SVC(loss="squared_hinge"),
    SVC(multiclass="ovr", calibration="sigmoid", random_state=0),
    SVC(calibration="sigmoid", random_state=0),
    SVC(calibration="platt", random_state=0),
    PSVC(rows="features"),
    PSVR(rows="features"),
    PSVR("linear", rows="axes"),
    PSVMSelector(n_features_to_select=0.5),
    PSVMSelector(n_resamples=3, random_state=0),
]


@parametrize_with_checks(QUICK)
def test_conformity(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:nu=0.5 is infeasible")  # some checks have unbalanced classes
@parametrize_with_checks([*ESTIMATORS[len(QUICK) :], *VARIANTS])
def test_conformity_of_variants(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_conformity_of_all_estimators_takes_few_programs():
    """Count compilations and seconds of all checks in one process without compiled programs."""
    program = Path(__file__).parent / "count_compilations.py"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")}
    run = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True
    )
    print(run.stdout)
    compiled = int(run.stdout.split("programs in all: ")[1].split()[0])
    assert compiled < 500
