"""``python -m bench.derivatives``: what a gradient costs, and many small problems at once.

Value and gradient of the log-likelihood of sparse coordinates (n = 200) with respect to the 20
widths of a diagonal Gaussian kernel and C, beside the value alone, each in one compiled program; at
several hyperparameters, new splits in every evaluation. And 100 chess boards of 160 examples solved
in one program, beside as many fits of scikit-learn's SVC one after the other. The contestants take
turns; compilation is apart. Every solution of the batch is certified in NumPy.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sklearn.svm

from bench.results import write_section
from bench.timing import Contestant, race
from jsvm import data, kernels, objectives, problems, solve

TITLE = "Derivatives: their cost, and batches of small problems"
EVALUATIONS = 50  # in one run, each with a split of its own
PLACES = ((0.02, 1.0), (0.05, 10.0), (0.2, 30.0))  # γ and C
PROBLEMS, EXAMPLES, GAMMA, TOL = 100, 160, 0.5, 1e-3
COSTS = (1.0, 10.0, 1000.0)
PEER: Any = sklearn.svm.SVC


def likelihood_programs(X: Any, y: Any) -> tuple[Callable, Callable]:
    """Return programs for the value, and for value and gradient, of many splits in turn."""

    def value(theta: Any, key: Any) -> Any:
        kernel = kernels.ARD(jnp.exp(theta[:-1]))
        return objectives.log_likelihood(kernel, X, y, C=jnp.exp(theta[-1]), key=key)

    def over_keys(function: Callable) -> Callable:
        return jax.jit(lambda theta, keys: jax.lax.map(lambda key: function(theta, key), keys))

    return over_keys(value), over_keys(jax.value_and_grad(value))


def cost_of_gradients(repeats: int) -> tuple[list[str], float]:
    """Return rows of a table, and the geometric mean of the ratios."""
    X, y = (jnp.asarray(v, float) for v in data.sparse_coordinates(3, 14, 3, size=200, key=0))
    value, both = likelihood_programs(X, y)
    keys = jax.random.split(jax.random.key(0), EVALUATIONS)
    rows, ratios = [], []
    for gamma, C in PLACES:
        theta = jnp.log(jnp.array([gamma] * X.shape[1] + [C]))
        run: Any = [
            Contestant(name, lambda f=f, t=theta: jax.block_until_ready(f(t, keys)), compiles=True)
            for name, f in (("value", value), ("both", both))
        ]
        race(run, repeats)
        best = [min(contestant.times) / EVALUATIONS for contestant in run]
        ratios.append(best[1] / best[0])
        first = " / ".join(f"{contestant.first:.1f}" for contestant in run)
        rows.append(
            f"| {gamma} | {C:g} | {1e3 * best[0]:.3f} | {1e3 * best[1]:.3f} | {ratios[-1]:.2f} | "
            f"{first} |"
        )
    return rows, float(np.exp(np.mean(np.log(ratios))))


def boards() -> tuple[np.ndarray, np.ndarray]:
    """Return 100 chess boards."""
    drawn = [data.chess_board(4, 2, size=EXAMPLES, key=k) for k in range(PROBLEMS)]
    X, y = (
        np.stack([np.asarray(part, float) for part in parts]) for parts in zip(*drawn, strict=True)
    )
    return X, y


def in_one_program(X: Any, y: Any) -> Callable[[Any], Any]:
    """Return the program that solves all problems for one C."""

    def one(problem: tuple) -> Any:
        X, y, C = problem
        s = solve(problems.c_svc((kernels.RBF(GAMMA), X), y, C))
        return s.alpha, s.bias

    def all_of(C: Any) -> Any:
        # On a CPU one after the other is faster than under vmap: a matrix stays in the cache.
        return jax.lax.map(one, (jnp.asarray(X), jnp.asarray(y), jnp.full(PROBLEMS, C)))

    return jax.jit(all_of)


def largest_gap(X: np.ndarray, y: np.ndarray, C: float, alphas: np.ndarray) -> float:
    """Return the largest violation of the KKT conditions of all solutions, in NumPy."""
    gaps = []
    for points, labels, alpha in zip(X, y, alphas, strict=True):
        squares = ((points[:, None] - points[None]) ** 2).sum(-1)
        G = labels - np.exp(-GAMMA * squares) @ alpha
        lower, upper = np.minimum(0, labels * C), np.maximum(0, labels * C)
        gaps.append(G[alpha < upper].max() - G[alpha > lower].min())
    return float(max(gaps))


def batches(repeats: int) -> tuple[list[str], float]:
    """Return rows of a table, and the geometric mean of the ratios."""
    X, y = boards()
    program = in_one_program(X, y)
    rows, ratios = [], []
    for C in COSTS:

        def one_by_one(C: float = C) -> None:
            for points, labels in zip(X, y, strict=True):
                PEER(C=C, gamma=GAMMA, tol=TOL).fit(points, labels)

        ours = Contestant(
            "jsvm", lambda C=C: jax.block_until_ready(program(jnp.asarray(C))), compiles=True
        )
        theirs = Contestant("scikit-learn", one_by_one)
        race([ours, theirs], repeats)
        gap = largest_gap(X, y, C, np.asarray(ours.result[0]))
        best, peer = min(ours.times), min(theirs.times)
        ratios.append(peer / best)
        rows.append(
            f"| {C:g} | {1e3 * best:.1f} | {1e3 * peer:.1f} | {ratios[-1]:.2f} | {gap:.0e} | "
            f"{ours.first:.1f} |"
        )
    return rows, float(np.exp(np.mean(np.log(ratios))))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.derivatives", description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    with jax.enable_x64(True):
        cost, cost_ratio = cost_of_gradients(options.repeats)
        batch, batch_ratio = batches(options.repeats)
    text = "\n".join(
        [
            f"`python -m bench.derivatives`: best of {options.repeats}, contestants in turn, "
            f"{time.perf_counter() - begin:.0f} s in all.",
            "",
            f"Log-likelihood of sparse-3, n=200, and its gradient by 21 parameters: "
            f"**{cost_ratio:.2f} times** the value alone (geometric mean).",
            "",
            "| γ | C | value, ms | value and gradient, ms | ratio | first call (compiles), s |",
            "|---|---|---|---|---|---|",
            *cost,
            "",
            f"{PROBLEMS} chess boards, n={EXAMPLES}, γ={GAMMA}, in one program: "
            f"**{batch_ratio:.2f} times** as fast as scikit-learn's SVC in a loop (geometric",
            "mean).",
            "",
            "| C | jsvm, ms | scikit-learn, ms | ratio | largest KKT violation | first call, s |",
            "|---|---|---|---|---|---|",
            *batch,
        ]
    )
    print(text)
    if not options.no_write:
        write_section(TITLE, text)


if __name__ == "__main__":
    main()
