"""Step counts beside Table 7.2 of Glasmachers 2008, on the real data; skipped without them."""

import pytest

from bench import data, steps

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["image", "splice", "titanic", "banana"])
def test_step_counts_are_the_papers(name):
    if data.load(f"ida_{name}") is None:
        pytest.skip("the data sets are not beside the repository")
    case = steps.CASES[name]
    row = steps.measure(name, case, permutations=3)
    assert row is not None
    assert row["SMO"] == pytest.approx(case.smo, rel=0.25)
    assert row["PA-SMO"] <= row["SMO"]
    assert row["spread"] < 1e-6  # all algorithms reach the same objective
