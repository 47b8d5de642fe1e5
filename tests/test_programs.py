"""Compiled programs on disk: loaded, not compiled, and right whatever lies in the folder."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jsvm import kernels, programs
from jsvm.programs import NotKeptError, Program, forget_programs, keep_compiled_programs, program
from jsvm.solvers import SMO, Status

FIT = """
import json, jax, numpy as np
from jsvm import SVC, kernels, problems, solve

events = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, *_, **given: events.append((name, given.get("fun_name")))
)
X = np.random.default_rng(0).normal(size=(30, 2))
y = np.where(X[:, 0] > 0, 1.0, -1.0)
solution = solve(problems.c_svc((kernels.RBF(0.5), X), y, 10.0))
compiled = [name for event, name in events if event.endswith("backend_compile_duration")]
loaded = [event for event, _ in events if event == "/jsvm/load_program_duration"]
print(json.dumps([solution.alpha.tobytes().hex(), sorted(compiled), len(loaded)]))
"""

OWN_KERNEL = """
import sys, numpy as np
from jsvm import kernels, problems, solve
from jsvm.kernels import Kernel
from jsvm._typing import pytree

@pytree
class KernelOfTheUser(kernels.RBF):
    pass

solve(problems.c_svc((KernelOfTheUser(0.5), np.eye(4)), np.array([1.0, -1.0, 1.0, -1.0]), 1.0))
"""


def run(text: str, folder: Any) -> Any:
    environment = {**os.environ, "JSVM_CACHE": str(folder)}
    command = [sys.executable, "-W", "error", "-c", text]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def answer(process: Any) -> Any:
    output = process.communicate(timeout=300)[0]
    assert process.returncode == 0
    return json.loads(output)

    forget_programs()


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.program"))


def sample(**options: Any) -> Program:
    return program(_cube, **options)


def _cube(x: Any, times: Any = 1) -> Any:
    return times * x**3


def test_the_next_process_compiles_nothing_and_finds_the_same_bits(tmp_path):
    folder = tmp_path / "programs"
    first, second = (answer(run(FIT, folder)) for _ in range(2))
    assert first[0] == second[0]
    assert any("_advance" in name for name in first[1])
    assert second[1] == []
    assert second[2] == len(files(folder))
    assert folder.stat().st_mode & 0o777 == 0o700


def test_processes_may_start_at_the_same_time(tmp_path):
    first, second = (run(FIT, tmp_path / "programs") for _ in range(2))
    assert answer(first)[0] == answer(second)[0]
    assert answer(run(FIT, tmp_path / "programs"))[1] == []
    assert not list((tmp_path / "programs").glob("*.part"))


def test_programs_of_a_users_kernel_are_not_kept(tmp_path):
    process = run(OWN_KERNEL, tmp_path)
    process.communicate()
    assert process.returncode == 0
    names = [path.read_bytes() for path in files(tmp_path)]
    assert len(names) > 0  # the large one does not depend on the kernel
    assert not any(
        b"KernelOfTheUser" in content or b"jit__in_memory" in content for content in names
    )


class TestProgram:
    def test_is_compiled_once_and_loaded_afterwards(self, folder):
        assert float(sample()(2.0)) == 8.0
        assert len(files(folder)) == 1
        loaded = []
        jax.monitoring.register_event_duration_secs_listener(
            lambda event, *_, **__: loaded.append(event) if event == programs.LOADED else None
        )
        assert float(sample()(3.0)) == 27.0
        assert len(loaded) == 1
        assert len(files(folder)) == 1

    def test_shapes_types_and_settings_have_programs_of_their_own(self, folder):
        cube = sample()
        for x in (2.0, 2, np.float32(2), jnp.ones(3), np.ones((3, 1), np.float32)):
            np.testing.assert_array_equal(cube(x), np.asarray(x) ** 3)
        assert len(files(folder)) == 5
        with jax.enable_x64(True):
            assert cube(np.ones(3)).dtype == np.float64
        assert len(files(folder)) == 6

    def test_static_arguments_in_any_place(self, folder):
        cube = sample(static_argnames="times")
        assert [float(cube(2.0, 3)), float(cube(2.0, times=4)), float(cube(2.0))] == [24, 32, 8]
        assert float(sample(static_argnames=("times",))(2.0, 3)) == 24
        assert len(files(folder)) == 4

    def test_the_digest_does_not_depend_on_the_process(self, folder):
        text = (
            "from jsvm.programs import program\n"
            "import jax\n"
            "add = program(jax.numpy.linspace, static_argnames=('num', 'endpoint', 'axis'))\n"
            "print(float(add(0.0, 1.0, num=3, axis=0, endpoint=True)[1]))"
        )
        for seed in ("1", "2", "3"):
            environment = {**os.environ, "JSVM_CACHE": str(folder), "PYTHONHASHSEED": seed}
            subprocess.run([sys.executable, "-c", text], env=environment, check=True)
        assert len(files(folder)) == 1

    def test_transformations_see_through_it(self, folder):
        cube = sample()
        assert float(jax.grad(cube)(2.0)) == 12.0
        np.testing.assert_array_equal(jax.vmap(cube)(jnp.arange(3.0)), [0.0, 1.0, 8.0])
        assert float(jax.jit(cube)(2.0)) == 8.0
        assert files(folder) == []

    def test_donated_memory_is_used(self, folder):
        add = program(_add, donate_argnums=0)
        for _ in range(2):
            memory = jnp.zeros(1000)
            assert float(add(memory, 1.0)[0]) == 1.0
            assert memory.is_deleted()
            forget_programs()

    def test_structures_come_back(self, folder):
        tell = program(_structured)
        for _ in range(2):
            kernel, numbers = tell(kernels.RBF(2.0), {"a": np.arange(3)})
            assert isinstance(kernel, kernels.RBF)
            assert float(kernel.gamma) == 4.0
            assert list(numbers) == ["a", "b"]
            assert numbers["b"] is None
            forget_programs()

    def test_random_keys_are_arguments(self, folder):
        draw = program(jax.random.uniform)
        expected = jax.random.uniform(jax.random.key(3))
        for _ in range(2):
            assert draw(jax.random.key(3)) == expected
            forget_programs()

    def test_lapack_is_ready_after_loading(self, folder):
        text = (
            "import numpy as np, jax\n"
            "from jsvm.programs import program\n"
            "factor = program(jax.lax.linalg.cholesky)\n"
            "print(float(factor(np.full((1, 1), 4.0, np.float32))[0, 0]))"
        )
        assert [answer(run(text, folder)) for _ in range(2)] == [2.0, 2.0]
        assert len(files(folder)) == 1

    def test_what_comes_from_the_cache_of_jax_is_not_written_again(self, folder):
        text = (
            "import sys, jax, numpy as np\n"
            "from jsvm.programs import program\n"
            "jax.config.update('jax_compilation_cache_dir', sys.argv[1])\n"
            "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)\n"
            "print(float(program(jax.numpy.linalg.norm)(np.ones(4))))"
        )
        text = text.replace("sys.argv[1]", repr(str(folder.parent / "jax")))
        for kept in (1, 0, 0):
            assert answer(run(text, folder)) == 2.0
            assert len(files(folder)) == kept
            for path in files(folder):
                path.unlink()

    def test_calls_of_the_host_are_not_kept(self, folder):
        ask = program(_calls_back)
        assert float(ask(2.0)) == 4.0
        assert files(folder) == []


def _add(memory: Any, x: Any) -> Any:
    return memory + x


def _structured(kernel: Any, numbers: Any) -> Any:
    return kernels.RBF(kernel.gamma**2), {**numbers, "b": None}


def _calls_back(x: Any) -> Any:
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    return jax.pure_callback(lambda v: np.float32(v**2), shape, x)


class TestFolder:
    @pytest.mark.parametrize(
        "damage",
        [
            lambda content: b"",
            lambda content: content[: len(content) // 2],
            lambda content: b"#!/bin/sh\n" + content,
            lambda content: content[:60] + bytes([content[60] ^ 1]) + content[61:],
            lambda content: content[:-1] + bytes([content[-1] ^ 128]),
        ],
    )
    def test_damaged_files_are_ignored_and_rewritten(self, damage, folder):
        sample()(2.0)
        (path,) = files(folder)
        proper = path.read_bytes()
        path.write_bytes(damage(proper))
        assert float(sample()(2.0)) == 8.0
        assert len(path.read_bytes()) == len(proper)

    def test_a_program_that_does_not_run_is_replaced(self, folder, monkeypatch):
        def broken(*_: Any) -> Any:
            raise jax.errors.JaxRuntimeError("NOT_FOUND: Function fusion not found")

        sample()(2.0)
        monkeypatch.setattr(programs, "_load", lambda *_: broken)
        cube = sample()
        assert [float(cube(2.0)) for _ in range(2)] == [8.0, 8.0]

    def test_off_keeps_nothing(self, folder):
        assert keep_compiled_programs("off") is None
        assert float(sample()(2.0)) == 8.0
        assert files(folder) == []

    def test_a_folder_that_others_may_write_to_is_not_used(self, tmp_path):
        shared = tmp_path / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        try:
            assert keep_compiled_programs(shared) is None
            assert float(sample()(2.0)) == 8.0
        finally:
            keep_compiled_programs("off")
        assert files(shared) == []

    def test_a_place_where_no_folder_can_be_is_not_used(self, tmp_path):
        (tmp_path / "file").write_text("")
        assert keep_compiled_programs(tmp_path / "file" / "programs") is None
        assert keep_compiled_programs("off") is None

    def test_a_folder_that_vanishes_costs_only_time(self, folder):
        folder.rmdir()
        assert float(sample()(2.0)) == 8.0

    def test_the_usual_folder(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        try:
            assert keep_compiled_programs() == tmp_path / "jsvm"
        finally:
            keep_compiled_programs("off")

    def test_the_oldest_files_make_room(self, folder, monkeypatch):
        sample()(2.0)
        sample()(np.ones(2, np.float32))
        old, new = sorted(files(folder), key=lambda path: path.stat().st_mtime_ns)
        os.utime(old, (1, 1))
        monkeypatch.setattr(programs, "MOST_BYTES", 2 * new.stat().st_size + 500)
        sample()(np.ones(3, np.float32))
        assert not old.exists()
        assert new.exists()


@dataclass(frozen=True)
class Own:
    x: int = 1


class TestWord:
    def test_differs_where_values_do(self):
        tree = jax.tree.structure
        values = [1, 1.0, True, "1", None, (1,), [1], {"a": 1}, Status.CONVERGED, np.dtype("f4")]
        values += [jnp.sqrt, np.float32, SMO(), SMO(tol=0.1), partial(jnp.sum, axis=1)]
        values += [tree(kernels.RBF(1.0)), tree(kernels.Laplacian(1.0)), tree((1, (2,))), tree(1)]
        values += [tree(kernels.Polynomial(2)), tree(kernels.Polynomial(3))]
        words = [programs._word(value) for value in values]
        assert len(set(words)) == len(values)
        assert words == [programs._word(value) for value in values]

    @pytest.mark.parametrize(
        "value", [Own(), lambda x: x, partial(lambda x: x), object(), (Own,), np.ones(2)]
    )
    def test_there_is_none_for_what_is_not_ours(self, value):
        with pytest.raises(NotKeptError):
            programs._word(value)
