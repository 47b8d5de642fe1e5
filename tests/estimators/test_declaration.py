"""Estimators are dataclasses whose parameters are declared and documented once."""

import inspect
import pickle
from typing import Any

import pytest
from sklearn.base import clone

import jsvm
from jsvm import SVC, AutoSVC, PSVMSelector, estimators
from jsvm.estimators.declaration import estimator
from jsvm.estimators.svr import Regressor

PUBLIC = [getattr(estimators, name) for name in estimators.__all__]


def parameters(cls: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(cls).parameters)


def documented(cls: Any) -> list[str]:
    """Names of the entries of the section of parameters."""
    section = cls.__doc__.split("Parameters\n----------\n")[1].split("\nAttributes\n")[0]
    heads = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return [name for head in heads for name in head.split(" : ")[0].split(", ")]


@pytest.mark.parametrize("cls", PUBLIC)
def test_every_parameter_is_documented_once(cls):
    assert sorted(documented(cls)) == sorted(parameters(cls))
    assert ">>>" in cls.__doc__
    assert cls.__doc__.index("Attributes\n---") < cls.__doc__.index("Examples\n---")


@pytest.mark.parametrize("cls", PUBLIC)
def test_all_but_the_kernel_is_given_by_name(cls):
    positional = [p.name for p in parameters(cls).values() if p.kind is not p.KEYWORD_ONLY]
    assert positional == {AutoSVC: ["strategy", "kernel"], PSVMSelector: []}.get(cls, ["kernel"])


@pytest.mark.parametrize("cls", PUBLIC)
def test_clones_pickles_and_set_params_keep_what_was_given(cls):
    machine = cls(tol=0.5).set_params(cache_size=7)
    others: list[Any] = [clone(machine), pickle.loads(pickle.dumps(machine))]
    for other in others:
        assert other.get_params() == machine.get_params()
        assert (other.tol, other.cache_size) == (0.5, 7)
    assert machine != cls(tol=0.5)  # compared by identity, as scikit-learn's
    assert repr(machine) == f"{cls.__name__}(cache_size=7, tol=0.5)"


def test_a_fixed_parameter_is_not_taken():
    assert AutoSVC().gamma == "scale"
    assert "gamma" not in parameters(AutoSVC) | AutoSVC().get_params()
    with pytest.raises(TypeError, match="gamma"):
        AutoSVC(gamma=1.0)


def test_own_parameters_come_first():
    assert list(parameters(SVC))[:3] == ["kernel", "C", "loss"]
    assert documented(SVC)[:3] == ["kernel", "C", "loss"]


def test_a_new_estimator_states_what_is_new():
    @estimator
    class Other(Regressor):
        """Another regression machine.

        Parameters
        ----------
        width : float
            Of something.
        C : float
            Told differently.
        """

        width: Any = 2.0
        degree = 4

    assert Other(width=1.0).get_params()["width"] == 1.0
    assert (Other().C, Other().degree) == (1.0, 4)
    assert documented(Other)[:3] == ["kernel", "width", "C"]
    assert "Told differently" in str(Other.__doc__)
    assert "Cost of an error" not in str(Other.__doc__)


def test_names_and_version():
    assert set(estimators.__all__) <= set(jsvm.__all__)
    assert jsvm.__version__[0].isdigit()
