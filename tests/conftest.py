"""Strict tests: shapes and types checked at run time, no NaN, no silent broadcasting.

The import hook has to run before jsvm is imported, hence the order here.
"""

import importlib
import os
import pkgutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

os.environ["JSVM_CACHE"] = "off"  # tests neither read nor write the user's programs
os.environ["SCIPY_ARRAY_API"] = "1"  # or scikit-learn skips its checks of array-API input

with install_import_hook("jsvm", "beartype.beartype"):
    import jsvm

    for module in pkgutil.walk_packages(jsvm.__path__, "jsvm."):  # also what is imported on use
        if module.name != "jsvm.__main__":
            importlib.import_module(module.name)

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_debug_nans", True)

# The workers share compiled programs, with each other and with the next run.
CACHE = Path(__file__).parent.parent / ".pytest_cache" / "compiled"
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)

# Every compiled program takes some memory maps of its process, of which Linux allows 65 530; beyond
# them XLA ends with a segmentation fault. What is compiled again comes from the disk.
MAPS, MOST_MAPS, TESTS = Path("/proc/self/maps"), 40_000, count(1)

settings.register_profile("default", deadline=None, derandomize=True, database=None)
settings.load_profile("default")


def pytest_runtest_teardown() -> None:
    """Forget the programs of this process before they are too many."""
    if next(TESTS) % 20 == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()


@pytest.fixture
def x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator whose seed depends on the name of the test only."""
    seed = sum(ord(c) * (k + 1) for k, c in enumerate(request.node.name))
    return np.random.default_rng(seed)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path | None]:
    """Keep programs in a folder of the test."""
    name = "jax_persistent_cache_min_compile_time_secs"
    usual = getattr(jax.config, name)
    jax.config.update(name, np.inf)  # what is in JAX's cache is not kept
    jsvm.programs.forget_programs()  # of other tests
    with jax.debug_nans(False):
        yield jsvm.programs.keep_compiled_programs(tmp_path / "programs")
    jsvm.programs.keep_compiled_programs("off")
    jax.config.update(name, usual)
