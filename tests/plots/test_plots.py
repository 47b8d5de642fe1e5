"""What the figures show, read back from what matplotlib was given to draw."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from jsvm import SVC, data, plots
from jsvm.plots import style

ROUNDS = [
    {"violation": 3.0, "objective": -1.0, "seconds": 0.2, "steps": 5, "support_vectors": 2},
    {"violation": 0.5, "objective": -4.0, "seconds": 0.3, "steps": 9, "support_vectors": 4},
    {"violation": 0.0, "objective": -5.0, "seconds": 0.7, "steps": 11, "support_vectors": 3},
]


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture
def pyplot():
    """Current Axes in memory, closed afterwards; the backend is the one from before again."""
    import matplotlib.pyplot as plt

    before = plt.get_backend()
    plt.switch_backend("Agg")
    yield plt
    plt.close("all")
    plt.switch_backend(before)


def labelled(ax):
    handles, labels = ax.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def offsets(collection):
    return np.asarray(collection.get_offsets())


DRAWINGS = {
    "convergence": lambda ax: plots.convergence(ROUNDS, ax=ax),
    "decision_regions": lambda ax: plots.decision_regions(
        lambda Z: Z[:, 0] - 0.5, np.eye(2), np.array([1.0, -1.0]), resolution=5, ax=ax
    ),
    "landscape": lambda ax: plots.landscape(np.eye(2), [1, 2], [1, 2], ax=ax),
    "ranked_features": lambda ax: plots.ranked_features([1.0, 2.0], ax=ax),
    "selection_path": lambda ax: plots.selection_path([1.0, 2.0], {"C": [1.0, 2.0]}, ax=ax),
}


@pytest.mark.parametrize("name", plots.__all__)
def test_every_figure_keeps_to_its_axes_and_changes_no_setting(name, ax):
    settings = dict(rcParams)
    assert DRAWINGS[name](ax) is ax
    assert dict(rcParams) == settings
    assert ax.has_data()
    ax.figure.canvas.draw()  # it can be drawn, without a warning


@pytest.mark.parametrize("name", plots.__all__)
def test_every_figure_takes_the_current_axes(name, pyplot):
    current = pyplot.subplots()[1]
    assert DRAWINGS[name](None) is current
    assert len(pyplot.get_fignums()) == 1


@pytest.mark.parametrize("name", plots.__all__)
def test_every_figure_has_an_example(name):
    assert ">>>" in getattr(plots, name).__doc__


def test_importing_plots_does_not_import_matplotlib():
    program = "import sys, jsvm; jsvm.plots.landscape; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_matplotlib_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"jsvm\[plots\]"):
        plots.ranked_features([1.0])


class TestDecisionRegions:
    def test_a_machine_with_its_support_vectors_and_margins(self, ax):
        X, y = data.chess_board(2, 2, size=60, key=0)
        X, y = np.asarray(X, float), np.asarray(y, float)
        machine = SVC(C=100.0, gamma=1.0).fit(X, y)
        plots.decision_regions(machine, X, y, ax=ax, resolution=40)
        drawn = labelled(ax)
        np.testing.assert_array_equal(offsets(drawn["positive"]), X[y > 0])
        np.testing.assert_array_equal(offsets(drawn["negative"]), X[y < 0])
        np.testing.assert_array_equal(offsets(drawn["support"]), X[machine.support_])
        levels = [list(c.levels) for c in ax.collections if hasattr(c, "levels")]
        assert levels[1:] == [[0.0], [-1.0, 1.0]]
        assert levels[0][0] == -levels[0][-1]  # white is zero
        (low, high), reach = ax.get_xlim(), X[:, 0]
        assert low < reach.min() < reach.max() < high

    def test_lines_that_are_not_there_are_not_drawn(self, ax):
        plots.decision_regions(lambda Z: 2 + 0 * Z[:, 0], np.eye(2), [1, 0], ax=ax, resolution=5)
        assert sum(hasattr(c, "levels") for c in ax.collections) == 1

    def test_labels_may_be_words(self, ax):
        plots.decision_regions(lambda Z: Z[:, 0], np.eye(2), ["yes", "no"], ax=ax, resolution=5)
        np.testing.assert_array_equal(offsets(labelled(ax)["positive"]), [[1.0, 0.0]])

    def test_a_column_of_one_value_is_drawn(self, ax):
        X = np.array([[0.0, 3.0], [1.0, 3.0]])
        plots.decision_regions(lambda Z: Z[:, 0], X, [0, 1], ax=ax, resolution=5)
        assert ax.get_ylim() == (2.5, 3.5)

    def test_labels_are_counted(self, ax):
        with pytest.raises(ValueError, match="one label for each of the 2 rows"):
            plots.decision_regions(lambda Z: Z[:, 0], np.eye(2), [1], ax=ax)


class TestConvergence:
    @pytest.mark.parametrize(
        ("against", "places", "name"),
        [
            ("seconds", [0.2, 0.3, 0.7], "seconds"),
            ("rounds", [1, 2, 3], "rounds"),
            ("steps", [5, 9, 11], "pair steps"),
        ],
    )
    def test_violation(self, ax, against, places, name):
        plots.convergence(ROUNDS, against=against, ax=ax)
        (line,) = ax.lines
        np.testing.assert_array_equal(line.get_xdata(), places)
        np.testing.assert_array_equal(line.get_ydata(), [3.0, 0.5, 0.0])
        assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
        assert (ax.get_xlabel(), ax.get_ylabel()) == (name, "KKT violation")

    def test_objective_and_distance_to_the_optimum(self, ax):
        plots.convergence(ROUNDS, show="objective", ax=ax)
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [-1.0, -4.0, -5.0])
        assert ax.get_yscale() == "linear"
        plots.convergence(ROUNDS, show="objective", optimum=-6.0, ax=ax)
        np.testing.assert_array_equal(ax.lines[1].get_ydata(), [5.0, 2.0, 1.0])
        assert ax.get_yscale() == "log"

    def test_several_runs_and_the_tolerance(self, ax):
        plots.convergence(ROUNDS, label="first", ax=ax)
        plots.convergence(ROUNDS[:2], label="second", tol=1e-3, ax=ax)
        assert list(labelled(ax)) == ["first", "second", "tolerance 0.001"]
        assert list(ax.lines[2].get_ydata()) == [1e-3, 1e-3]
        assert len({line.get_color() for line in ax.lines}) == 3

    def test_a_solution_is_its_history(self, ax):
        X, y = data.chess_board(2, 2, size=40, key=0)
        (solution,) = SVC().fit(np.asarray(X), np.asarray(y)).solutions_
        plots.convergence(solution, show="support_vectors", ax=ax)
        assert ax.lines[0].get_ydata()[-1] == np.count_nonzero(solution.alpha)

    @pytest.mark.parametrize(
        ("rounds", "options", "message"),
        [
            ([], {}, "history is empty"),
            (ROUNDS, {"show": "gap"}, "show='gap' is unknown"),
            (ROUNDS, {"against": "hours"}, "against='hours' is unknown"),
            (ROUNDS, {"optimum": 1.0}, "show='objective' only"),
        ],
    )
    def test_nonsense(self, ax, rounds, options, message):
        with pytest.raises(ValueError, match=message):
            plots.convergence(rounds, ax=ax, **options)


class TestLandscape:
    C, GAMMA = np.logspace(-1, 3, 9), np.logspace(-2, 1, 7)
    VALUES = np.log10(GAMMA)[:, None] ** 2 + np.log10(C)[None, :] ** 2

    def test_contours_and_path(self, ax):
        path = np.array([[0.1, 0.01], [3.0, 0.2], [1.0, 1.0]])
        levels = [0.0, 1.0, 2.0, 5.0, 15.0]
        plots.landscape(self.VALUES, self.C, self.GAMMA, path=path, levels=levels, ax=ax)
        filled = ax.collections[0]
        assert list(filled.levels) == levels
        assert filled.cmap.name == "viridis"
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        np.testing.assert_allclose(ax.get_xlim(), (0.1, 1000.0))
        np.testing.assert_allclose(ax.get_ylim(), (0.01, 10.0))
        np.testing.assert_array_equal(ax.lines[0].get_xydata(), path)
        np.testing.assert_array_equal(offsets(labelled(ax)["start"]), path[:1])
        np.testing.assert_array_equal(offsets(labelled(ax)["end"]), path[-1:])
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("C", "γ")

    def test_the_lowest_level_is_around_the_minimum(self, ax):
        plots.landscape(self.VALUES, self.C, self.GAMMA, levels=[0.0, 0.5, 15.0], ax=ax)
        around = ax.collections[0].get_paths()[0]
        assert around.contains_point((1.0, 1.0))
        assert not around.contains_point((100.0, 1.0))

    def test_colour_bar_names_and_what_is_not_finite(self, ax):
        values = self.VALUES.copy()
        values[0, 0], values[1, 2] = np.nan, np.inf
        same = {"names": ("cost", "width"), "ax": ax}
        plots.landscape(values, self.C, self.GAMMA, label="error", **same)
        assert [other.get_ylabel() for other in ax.figure.axes] == ["width", "error"]
        assert not ax.lines
        assert np.isfinite(ax.collections[0].levels).all()
        plots.landscape(values, self.C, self.GAMMA, label=None, **same)
        assert len(ax.figure.axes) == 2

    @pytest.mark.parametrize(
        ("values", "x", "y", "path", "message"),
        [
            (np.ones((9, 7)), C, GAMMA, None, r"\(7, 9\), not \(9, 7\)"),
            (np.ones((7, 9)), -C, GAMMA, None, "x must be two or more positive"),
            (np.ones((7, 9)), C, GAMMA[::-1], None, "y must be two or more positive"),
            (np.ones((7, 9)), C, GAMMA, [[1.0, -1.0]], "positive coordinates"),
            (np.ones((7, 9)), C, GAMMA, [1.0, 2.0], r"points \(x, y\)"),
        ],
    )
    def test_nonsense(self, ax, values, x, y, path, message):
        with pytest.raises(ValueError, match=message):
            plots.landscape(values, x, y, path=path, ax=ax)


class TestSelectionPath:
    PATH = {"C": [1.0, 10.0, 30.0], "γ": [[1.0, 1.0], [0.5, 2.0], [0.4, 3.0]]}  # noqa: RUF012

    @pytest.mark.parametrize("placed", [True, False])
    def test_lines_above_and_the_objective_below(self, placed):
        figure = Figure()
        ax = figure.subplots() if placed else figure.add_axes((0.1, 0.1, 0.8, 0.8))
        plots.selection_path([0.5, 0.3, 0.2], self.PATH, label="error", ax=ax)
        upper, lower = figure.axes
        assert upper is ax
        ys = [np.asarray(line.get_ydata()).tolist() for line in upper.lines]
        assert ys == [[1.0, 10.0, 30.0], [1.0, 0.5, 0.4], [1.0, 2.0, 3.0]]
        assert (upper.get_yscale(), lower.get_yscale()) == ("log", "linear")
        assert list(labelled(upper)) == ["C", "γ"]
        colours = [line.get_color() for line in upper.lines]
        assert colours[0] != colours[1] == colours[2]
        points = np.asarray(lower.lines[0].get_xydata())
        assert points.tolist() == [[0, 0.5], [1, 0.3], [2, 0.2]]
        assert (lower.get_xlabel(), lower.get_ylabel()) == ("iteration", "error")
        assert lower.get_position().y1 < upper.get_position().y0
        assert upper.get_shared_x_axes().joined(upper, lower)

    def test_beside_other_axes(self):
        figure = Figure(layout="constrained")
        left, right = figure.subplots(1, 2)
        plots.selection_path([0.5, 0.3, 0.2], self.PATH, ax=right)
        figure.canvas.draw()
        assert left.get_position().height > 1.3 * right.get_position().height
        assert left.get_position().x1 < right.get_position().x0

    @pytest.mark.parametrize(
        ("values", "parameters", "message"),
        [
            ([], {"C": []}, "one number an iteration"),
            ([[1.0]], {"C": [1.0]}, "one number an iteration"),
            ([1.0, 2.0], {"C": [1.0]}, "C: 2 iterations"),
            ([1.0, 2.0], {"C": [1.0, 0.0]}, "C must be positive"),
            ([1.0], {}, "no hyperparameter"),
        ],
    )
    def test_nonsense(self, ax, values, parameters, message):
        with pytest.raises(ValueError, match=message):
            plots.selection_path(values, parameters, ax=ax)


class TestRankedFeatures:
    def test_sorted_bars_with_colours_and_names(self, ax):
        plots.ranked_features([0.1, -2.0, 1.0], names=["a", "b", "c"], highlight=[0, 2], ax=ax)
        assert [bar.get_height() for bar in ax.patches] == [2.0, 1.0, 0.1]
        colours = [to_hex(bar.get_facecolor()).upper() for bar in ax.patches]
        assert colours == [style.GREY, style.VERMILLION, style.VERMILLION]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["b", "c", "a"]
        assert ax.get_ylim()[0] == 0.0

    def test_a_mask_is_as_good_as_indices(self, ax):
        plots.ranked_features([3.0, 2.0, 1.0], highlight=[False, True, False], ax=ax)
        colours = [to_hex(bar.get_facecolor()).upper() for bar in ax.patches]
        assert colours == [style.GREY, style.VERMILLION, style.GREY]
        legend = ax.legend()
        assert [text.get_text() for text in legend.get_texts()] == ["other", "highlighted"]

    def test_only_the_largest_of_many(self, ax):
        weights = np.arange(100.0)
        plots.ranked_features(weights, largest=30, ax=ax)
        assert [bar.get_height() for bar in ax.patches] == list(weights[:-31:-1])
        assert ax.get_xticklabels()[0].get_text() == "99"

    def test_many_have_ranks_for_names(self, ax):
        plots.ranked_features(np.arange(100.0), ax=ax)
        assert len(ax.patches) == 100
        assert ax.get_xlabel() == "rank of the feature"

    def test_of_several_outputs_the_largest_weight_counts(self, ax):
        plots.ranked_features([[1.0, 0.0], [-3.0, 2.0]], highlight=[], ax=ax)
        assert [bar.get_height() for bar in ax.patches] == [3.0, 2.0]

    @pytest.mark.parametrize(
        ("weights", "options", "message"),
        [
            ([], {}, "one number a feature"),
            ([1.0, 2.0], {"names": ["a"]}, "1 entries for 2 features"),
            ([1.0, 2.0], {"highlight": [True]}, "entries for 2 features"),
        ],
    )
    def test_nonsense(self, ax, weights, options, message):
        with pytest.raises(ValueError, match=message):
            plots.ranked_features(weights, ax=ax, **options)
