"""The chess board, the figure and the command line."""

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

from jsvm import data, plots
from jsvm.__main__ import main


def test_chess_board_follows_its_rule():
    X, y = data.chess_board(4, 2, size=2000, key=jax.random.key(1))
    X, y = np.asarray(X), np.asarray(y)
    assert X.min() >= 0
    assert X.max() < 4
    np.testing.assert_array_equal(y, np.where(np.floor(X).sum(1) % 2 == 0, 1.0, -1.0))
    assert abs(y.mean()) < 0.1
    fields = np.floor(X) @ np.array([4, 1])
    assert np.bincount(fields.astype(int), minlength=16).min() > 80  # 125 expected


def test_noise_is_the_probability_of_a_random_label():
    X, y = data.chess_board(4, 2, size=20_000, key=2, noise=0.3)
    clean = np.where(np.floor(np.asarray(X)).sum(1) % 2 == 0, 1.0, -1.0)
    wrong = (np.asarray(y) != clean).mean()
    assert wrong == pytest.approx(data.chess_board_bayes_error(noise=0.3), abs=0.01)


def test_a_seed_and_its_key_give_the_same_sample():
    a, b = (data.chess_board(3, 1, size=9, key=k) for k in (7, jax.random.key(7)))
    np.testing.assert_array_equal(a[0], b[0])
    np.testing.assert_array_equal(a[1], b[1])


@pytest.mark.parametrize("arguments", [{"noise": 1.5}, {"noise": -0.1}])
def test_noise_must_be_a_probability(arguments):
    with pytest.raises(ValueError, match="probability"):
        data.chess_board(4, 2, size=3, key=0, **arguments)


def test_demo_prints_its_table_and_writes_its_figure(tmp_path, capsys):
    path = tmp_path / "figure.png"
    assert main(["demo", "--figure", str(path), "--sizes", "60", "90"]) == 0
    lines = capsys.readouterr().out.splitlines()
    header = next(line for line in lines if "test error" in line)
    for column in ("Bayes error", "SVs", "pair steps", "KKT gap", "duality gap", "LIBSVM seconds"):
        assert column in header
    rows = [line.split() for line in lines if line.strip()[:2] in ("60", "90")]
    assert len(rows) == 2
    assert all(0 < float(row[1]) < 0.5 for row in rows)  # test error
    assert all(float(row[6]) <= 1e-3 for row in rows)  # KKT gap
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert path.stat().st_size > 20_000


def test_demo_refuses_nonsense(capsys):
    with pytest.raises(SystemExit):
        main(["demo", "--sizes", "3"])
    assert "--sizes" in capsys.readouterr().err


def test_decision_regions_draws_what_it_is_given():
    X, y = data.chess_board(2, 2, size=30, key=0)
    ax = Figure().subplots()
    plots.decision_regions(lambda Z: Z[:, 0] - 1.0, X, y, support=[0, 1, 2], ax=ax, resolution=20)
    labels = [c.get_label() for c in ax.collections]
    assert {"positive", "negative", "support"} <= set(labels)
    circles = ax.collections[labels.index("support")].get_offsets()
    np.testing.assert_allclose(np.asarray(circles), np.asarray(X)[:3])
    with pytest.raises(ValueError, match="two columns"):
        plots.decision_regions(lambda Z: Z[:, 0], np.zeros((3, 3)), np.zeros(3), ax=ax)
    with pytest.raises(ValueError, match="more outputs"):
        plots.decision_regions(lambda Z: Z, X, y, ax=ax, resolution=9)
