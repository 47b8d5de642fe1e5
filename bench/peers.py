"""The solvers that are compared, and the limit that none of them can beat.

Any solver computes at least the rows of the kernel matrix that belong to the support vectors. The
limit is the time of that alone.
"""

import importlib
import importlib.util
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import sklearn.svm
from threadpoolctl import ThreadpoolController

import jsvm
from bench.cases import Case

BLOCK = 512  # rows of a kernel matrix computed at a time
SMALL = 200_000  # entries of a kernel matrix for which threads do not pay
CACHE = 2000  # MB, for the peers that keep kernel rows
CORES = os.cpu_count() or 1
THREADS = ThreadpoolController()


def fit_jsvm(case: Case, X: np.ndarray, y: np.ndarray, tol: float) -> Any:
    return jsvm.SVC(**settings(case, tol)).fit(X, y)


def fit_libsvm(case: Case, X: np.ndarray, y: np.ndarray, tol: float) -> Any:
    return sklearn.svm.SVC(**settings(case, tol), cache_size=CACHE).fit(X, y)


def fit_intelex(case: Case, X: np.ndarray, y: np.ndarray, tol: float) -> Any:
    # Imported by name: the package is optional, and scikit-learn stays unpatched.
    SVC = importlib.import_module("sklearnex.svm").SVC
    return SVC(**settings(case, tol), cache_size=CACHE).fit(X, y)


def settings(case: Case, tol: float) -> dict[str, Any]:
    return {"kernel": "rbf", "C": case.C, "gamma": case.gamma, "tol": tol}


PEERS = {"libsvm": fit_libsvm, "intelex": fit_intelex}


def has_intelex() -> bool:
    return importlib.util.find_spec("sklearnex") is not None


def kernel_rows(X: np.ndarray, support: np.ndarray, gamma: float, *, exp: bool = True) -> None:
    """Compute the kernel rows of the support vectors and drop them, on all cores.

    Without `exp` the matrix product alone.
    """
    squares = np.einsum("ij,ij->i", X, X)
    workers = CORES if len(support) * len(X) > SMALL else 1
    height = max(1, min(BLOCK, -(-len(support) // workers)))
    starts = range(0, len(support), height)

    def work(worker: int) -> None:
        buffer = np.empty((height, len(X)))
        for start in starts[worker::workers]:
            chosen = support[start : start + height]
            block = np.matmul(X[chosen], X.T, out=buffer[: len(chosen)])
            if exp:
                gaussian_in_place(block, squares[chosen], squares, gamma)

    # NumPy's exp runs on one core: every core gets blocks of its own, and BLAS one thread each.
    with THREADS.limit(limits=1, user_api="blas"):
        if workers == 1:
            work(0)
            return
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, range(workers)))


def gaussian_in_place(
    products: np.ndarray, z_squares: np.ndarray, x_squares: np.ndarray, gamma: float
) -> None:
    """Turn ⟨z, x⟩ into exp(γ(2⟨z, x⟩ − ‖x‖² − ‖z‖²))."""
    products *= 2
    products -= x_squares
    products -= z_squares[:, None]
    products *= gamma
    np.exp(products, out=products)
