"""``python -m bench.noisy_rprop``: NoisyRprop on the test cases of Glasmachers 2008, section 11.4.

Random derivatives of f⁽¹⁾ to f⁽⁴⁾, first step size 0.01, starting points at a distance of 1.0 to
1.1 from the optimum, as in the thesis; it makes 10⁸ iterations, here it is 10⁷ in several runs. The
figure shows the same as Figures 11.1 to 11.3.
"""

import argparse
import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from bench.results import write_section
from jsvm import optim

TITLE = "NoisyRprop: the test cases of Glasmachers 2008, Figures 11.1–11.3"
FIGURE = Path(__file__).parent / "noisy_rprop.png"
OPTIMA = {"f1": 0.0, "f2": 0.5, "f3": 0.5, "f4": 0.75}
F1_STEPS = 300_000
FOUND = 1e-300  # a distance below this counts as zero
COUNTS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


CASES = {
    "f1": lambda x, m: jnp.where(m <= 0.25, -1.0, 1.0) * jnp.sign(x),
    "f2": lambda x, m: 2 * (x - m),
    "f3": lambda x, m: 2 * (x - m) + 1.8 * (x - m)[:, ::-1],
    "f4": lambda x, m: jnp.where(x <= m, -3.0, 1.0),
}  # derivatives of the functions with the random parameters m


def columns(names: tuple[str, ...]) -> dict[str, slice]:
    """Return the columns of the variables of each case; a row is a run."""
    ends = np.cumsum([2 if name in ("f2", "f3") else 1 for name in names])
    begins = [0, *ends[:-1]]
    return {n: slice(int(i), int(j)) for n, i, j in zip(names, begins, ends, strict=True)}


def starts(names: tuple[str, ...], runs: int) -> jax.Array:
    """Return points at 1.0 to 1.1 from the optima, on all sides."""
    rng = np.random.default_rng(0)
    found = []
    for name, part in columns(names).items():
        direction = rng.normal(size=(runs, part.stop - part.start))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        found.append(OPTIMA[name] + rng.uniform(1.0, 1.1, size=(runs, 1)) * direction)
    return jnp.asarray(np.concatenate(found, axis=1))


OPTIMISER: Any = optim.noisy_rprop(0.01)


@functools.partial(jax.jit, static_argnames=("names", "records", "every"))
def descend(
    carry: Any, key: Any, *, names: tuple[str, ...], records: int, every: int
) -> tuple[Any, Any]:
    """Go on for `records` × `every` steps and return each `every`-th search point."""

    def step(carry: Any, m: Any) -> tuple[Any, None]:
        x, state = carry
        parts = columns(names).items()
        gradient = [CASES[name](x[:, part], m[:, part]) for name, part in parts]
        update, state = OPTIMISER.update(jnp.concatenate(gradient, axis=1), state)
        return (x + update, state), None

    def block(carry: Any, key: Any) -> tuple[Any, Any]:
        carry, _ = lax.scan(step, carry, jax.random.uniform(key, (every, *carry[0].shape)))
        return carry, carry[0]

    return lax.scan(block, carry, jax.random.split(key, records))


def paths(
    names: tuple[str, ...], steps: int, runs: int, seed: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return numbers of steps and the search points there, denser at the beginning."""
    x = starts(names, runs)
    carry, key = (x, OPTIMISER.init(x)), jax.random.key(seed)
    counts, places, done = [], [], 0
    while done < steps:
        every = 1 if done == 0 else 100
        records = min(1000 if done < 100_000 else 10_000, (steps - done) // every)
        key, now = jax.random.split(key)
        carry, points = descend(carry, now, names=names, records=records, every=every)
        # On a logarithmic axis fewer points are enough later.
        kept = np.arange(records)[:: -1 if done < 1_000_000 else -100][::-1]
        counts.append(done + every * (kept + 1))
        places.append(np.asarray(points)[kept])
        done += every * records
    joined = np.concatenate(places)
    return np.concatenate(counts), {n: joined[:, :, part] for n, part in columns(names).items()}


def distances(places: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    # Not by squares: those of 1e-160 are zero.
    return {n: np.hypot.reduce(p - OPTIMA[n], axis=2) for n, p in places.items()}


def f1_lines(counts: np.ndarray, far: np.ndarray) -> list[str]:
    """Return when f⁽¹⁾ was found, and how constant the rate is."""
    first = [counts[np.argmax(run < FOUND)] for run in far.T if np.any(run < FOUND)]
    decades = [-np.log10(far[np.searchsorted(counts, n)]).mean() for n in (50_000, 100_000)]
    return [
        f"f⁽¹⁾: {len(first)} of {far.shape[1]} runs below {FOUND:g}, after "
        f"{np.mean(first):,.0f} ± {np.std(first):,.0f} iterations (Glasmachers 2008: exactly zero "
        f"after about 230,000). On average {decades[0]:.0f} decades after 50,000, "
        f"{decades[1]:.0f} after 100,000. Largest distance after {counts[-1]:,}: "
        f"{far[-1].max():.1e}."
    ]


def row(name: str, counts: np.ndarray, values: np.ndarray, form: str = ".1e") -> str:
    """Return the median, the lowest and the highest value after some numbers of iterations."""
    cells = []
    for count in COUNTS:
        if count > counts[-1]:
            continue
        at = values[np.searchsorted(counts, count)]
        low, middle, high = np.min(at), np.median(at), np.max(at)
        cells.append(f"{middle:{form}} ({low:{form}} to {high:{form}})")
    return f"| {name} | " + " | ".join(cells) + " |"


def draw(f1: tuple[Any, Any], rest: tuple[Any, Any], path: Path) -> None:
    """Draw Figures 11.1 to 11.3 again: one run, and the median of all."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    (n1, x1), (n, x) = f1, rest
    far1, far = distances(x1)["f1"], distances(x)
    fig, axes = plt.subplots(2, 2, figsize=(10, 7))
    first, second, third, fourth = axes.flat
    shown = np.where(far1 > 0, far1, np.nan)
    first.semilogy(n1, shown[:, 0], color="black", linewidth=0.7)
    first.set(title="f⁽¹⁾ (Figure 11.1)", ylabel="distance")
    for name, color in (("f2", "gray"), ("f3", "black")):
        second.loglog(n, far[name][:, 0], color=color, linewidth=0.4)
        second.loglog(n, np.median(far[name], axis=1), color=color, linewidth=1.5, label=name)
    second.set(title="f⁽²⁾ and f⁽³⁾ (Figure 11.2), thick: median of the runs", ylabel="distance")
    second.legend()
    third.loglog(n, far["f4"][:, 0], color="black", linewidth=0.4)
    third.loglog(n, np.median(far["f4"], axis=1), color="black", linewidth=1.5)
    third.set(title="f⁽⁴⁾ (Figure 11.3)", ylabel="distance")
    fourth.semilogx(n, x["f4"][:, :, 0], linewidth=0.5)
    fourth.set(title="f⁽⁴⁾: all runs; mean 0.75, median 0.5", ylabel="search point")
    for level in (0.5, 0.75):
        fourth.axhline(level, color="black", linewidth=0.5, linestyle=":")
    for ax in axes.flat:
        ax.set_xlabel("iterations")
    fig.tight_layout()
    fig.savefig(path, dpi=80)
    plt.close(fig)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.noisy_rprop", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args(arguments)
    with jax.enable_x64(True):
        f1 = paths(("f1",), F1_STEPS, options.runs, seed=1)
        rest = paths(("f2", "f3", "f4"), options.steps, options.runs, seed=2)
    (counts, places), far = rest, distances(rest[1])
    heads = [f"{count:,}" for count in COUNTS if count <= counts[-1]]
    lines = [
        f"`python -m bench.noisy_rprop`: {options.runs} runs from a distance of 1.0 to 1.1, step "
        "size 0.01 at first, float64. Glasmachers 2008 gives figures only.",
        "",
        *f1_lines(f1[0], distances(f1[1])["f1"]),
        "",
        "Distance to the optimum after so many iterations, median (lowest to highest):",
        "",
        "| case | " + " | ".join(heads) + " |",
        "|" + " --- |" * (len(heads) + 1),
        *(row(name, counts, far[name]) for name in far),
        row("f4, search point", counts, places["f4"][:, :, 0], ".4f"),
    ]
    print("\n".join(lines), flush=True)
    if not options.no_write:
        draw(f1, rest, FIGURE)
        image = f"![Distance to the optimum over iterations]({FIGURE.name})"
        write_section(TITLE, "\n".join([*lines, "", image]))


if __name__ == "__main__":
    main()
