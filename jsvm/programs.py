"""Compiled programs, kept on disk: the next process neither traces, lowers nor compiles them.

:func:`program` is ``jax.jit`` for functions that are called with concrete arrays. What it compiles
is written to the user's cache folder, one file a program, and loaded from there by later processes.
The name of a file is a digest of everything that the machine code depends on: the function, the
shapes and types, static arguments, jsvm's source text, the versions of JAX, the processor, flags of
XLA, and settings of JAX.

Not kept are programs that hold a class or a function of the user (a digest of a name says nothing
about its code) and programs that call the host, or a library other than LAPACK. Inside of
transformations, on arrays that are committed to a device, and while JAX looks for NaN, it is plain
``jit``.

Loading a program runs code. So the folder must belong to the user, and nobody else may write to it.
"""

import enum
import hashlib
import os
import pickle
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial, update_wrapper
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from pathlib import Path
from typing import Any
from weakref import WeakSet

import jax
import numpy as np
from jax.core import Tracer
from jax.experimental import serialize_executable

from jsvm.notice import Notice

VARIABLE = "JSVM_CACHE"  # of the environment: a folder, or "off"
SUFFIX, MAGIC = ".program", b"jsvm program 1\n"
MOST_BYTES = 1_000_000_000  # of all files; the oldest go first
CALLED = re.compile(r"custom_call @([\w.$]+)")  # names of functions outside of a program
LOADED = "/jsvm/load_program_duration"  # the event that JAX's monitoring reports
# Packages whose versions are in the digest.
TRUSTED = ("builtins", "jax", "jaxlib", "jsvm", "numpy", "optax")
SETTINGS = (  # of JAX, on which a program depends
    "jax_enable_x64",
    "jax_default_device",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_threefry_partitionable",
)
EXCLUDING = ("jax_debug_nans", "jax_debug_infs", "jax_disable_jit")  # then it is plain jit

_programs: "WeakSet[Program]" = WeakSet()
_folder: list[Path | None] = []  # the one chosen, once it is known


class NotKeptError(Exception):
    """A program depends on something that a digest cannot describe."""


def program(function: Any = None, **options: Any) -> Any:
    """Compile a function as ``jax.jit(function, **options)`` does, and keep the result on disk.

    Examples
    --------
    >>> @program(static_argnames="times")
    ... def repeated(x, times):
    ...     return x * times
    >>> float(repeated(2.0, times=3))
    6.0
    """
    return Program(function, **options) if function else partial(program, **options)


def keep_compiled_programs(folder: str | Path | None = None) -> Path | None:
    """Choose where compiled programs are kept, so that the next process need not compile them.

    They are kept by default, in ``~/.cache/jsvm`` (or in ``$XDG_CACHE_HOME/jsvm``). The environment
    variable ``JSVM_CACHE`` names another folder, or says ``off``; this function overrules it.

    Parameters
    ----------
    folder : path, optional
        Where to keep them; "off" keeps none. By default the folder named above.

    Returns
    -------
    Path or None
        The folder; None if none are kept.

    Examples
    --------
    >>> import jsvm
    >>> jsvm.keep_compiled_programs("programs")  # doctest: +SKIP
    """
    _folder[:] = [_opened(_usual_folder() if folder is None else folder)]
    return _folder[0]


def folder() -> Path | None:
    """Return where programs are kept; None if they are not."""
    if not _folder:
        keep_compiled_programs(os.environ.get(VARIABLE))
    return _folder[0]


def forget_programs() -> None:
    """Drop all loaded programs of this process, as ``jax.clear_caches`` does for those of JAX."""
    for one in _programs:
        one.ready.clear()


class Program:
    """A function whose executables are kept; see :func:`program`."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        update_wrapper(self, function)
        self._jitted: Any = jax.jit(function, **options)
        self._options = options
        names = options.get("static_argnames", ())
        # In a fixed order: that of a set differs from process to process, and so would the digest.
        self._static_names = (names,) if isinstance(names, str) else tuple(names)
        parameters = list(signature(function).parameters) if self._static_names else []
        self._static_places = tuple(parameters.index(name) for name in self._static_names)
        self.ready: dict[Any, Any] = {}
        _programs.add(self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the executable for these arguments."""
        if folder() is None:
            return self._jitted(*args, **named)
        dynamic, static = self._parted(args, named)
        leaves, tree = jax.tree.flatten(dynamic)
        try:
            kinds = tuple(map(_kind, leaves))
            key = tree, static, kinds, _settings()
        except NotKeptError:
            return self._jitted(*args, **named)
        run = self.ready.get(key)
        if run is None:
            run = self._obtained(key, args, named)
            self.ready[key] = run
        if run is self._jitted:
            return run(*args, **named)
        try:
            return run(*dynamic[0], **dynamic[1])
        except jax.errors.JaxRuntimeError:  # a program that loads, and yet is not whole
            self.ready[key] = self._jitted
            return self._jitted(*args, **named)

    def lower(self, *args: Any, **named: Any) -> Any:
        """Lower for the given arguments, as ``jax.jit`` does."""
        return self._jitted.lower(*args, **named)

    def _parted(self, args: tuple, named: dict[str, Any]) -> tuple[tuple[tuple, dict], tuple]:
        """Return the dynamic arguments, and the static ones."""
        if not self._static_names:
            return (args, named), ()
        static = [args[k] for k in self._static_places if k < len(args)]
        static += [(name, named[name]) for name in self._static_names if name in named]
        dynamic = tuple([v for k, v in enumerate(args) if k not in self._static_places])
        rest = {name: v for name, v in named.items() if name not in self._static_names}
        return (dynamic, rest), tuple(static)

    def _obtained(self, key: tuple, args: tuple, named: dict[str, Any]) -> Any:
        """Return the executable from disk, or compile and keep it; `jit` if it cannot be kept."""
        kept_in = folder()
        assert kept_in is not None
        name = f"{self.__module__}.{self.__qualname__}"  # type: ignore[attr-defined]
        try:
            text = "\n".join([_surroundings(), name, *map(_word, (self._options, *key))])
        except (NotKeptError, PackageNotFoundError, OSError):
            return self._jitted
        path = kept_in / f"{hashlib.sha256(text.encode()).hexdigest()}{SUFFIX}"
        executable = _load(path, key[0])
        if executable is not None:
            tally.loaded += 1
            return executable
        with notice.while_compiling(kept_in):
            lowered = self._jitted.lower(*args, **named)
            called = set(CALLED.findall(lowered.as_text()))
            if not all(library.startswith("lapack_") for library in called):
                return self._jitted
            _listen_for_hits()
            before = _hits.count
            executable = lowered.compile()
        tally.compiled += 1
        if _hits.count == before:
            _store(path, executable, bool(called))
        return executable


@dataclass
class Tally:
    """How many of the programs that are kept this process has compiled, and how many loaded."""

    compiled: int = 0
    loaded: int = 0


tally = Tally()
notice = Notice()


class _Hits(threading.local):
    """How often this thread has found a program in JAX's own cache on disk.

    What was loaded from there cannot be written once more: XLA would drop parts of it.
    """

    count = 0

    def note(self, event: str, **_: Any) -> None:
        self.count += event == "/jax/compilation_cache/cache_hits"


_hits = _Hits()


@cache
def _listen_for_hits() -> None:
    jax.monitoring.register_event_listener(_hits.note)


def _kind(leaf: Any) -> Any:
    """Return what a program must know of an argument."""
    if type(leaf) is np.ndarray:
        return leaf.shape, leaf.dtype
    if isinstance(leaf, jax.Array):
        if isinstance(leaf, Tracer) or leaf.committed:
            raise NotKeptError
        if not isinstance(leaf.dtype, np.dtype):
            return leaf.shape, str(leaf.dtype)  # random keys
        return (leaf.shape, leaf.dtype, "weak") if leaf.weak_type else (leaf.shape, leaf.dtype)
    return ((), leaf.dtype) if isinstance(leaf, np.generic) else type(leaf)


def _settings() -> tuple:
    config = jax.config
    if any([getattr(config, name) for name in EXCLUDING]):
        raise NotKeptError
    return tuple([getattr(config, name) for name in SETTINGS])


def _word(value: Any) -> str:
    """Return a text that is the same in every process, and for equal values only."""
    if hasattr(value, "__qualname__"):  # a class or a function
        root = value.__module__.partition(".")[0]
        if root not in TRUSTED or "<" in value.__qualname__:
            raise NotKeptError(f"{value!r} is not a part of jsvm")
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, jax.tree_util.PyTreeDef):
        node = value.node_data()
        inside = "".join(map(_word, value.children()))
        return "*" if node is None else f"{_word(node[0])}{_word(node[1])}({inside})"
    if isinstance(value, partial):
        return f"partial({_word(value.func)}{_word(value.args)}{_word(value.keywords)})"
    if isinstance(value, jax.Device):
        return f"{value.platform} {value.id};"
    name = _word(type(value))
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.dtype):
        return f"{name} {value!r};"
    if isinstance(value, enum.Enum):
        return f"{name} {value.name};"
    if isinstance(value, dict):
        value = tuple(sorted(value.items()))
    elif is_dataclass(value):
        value = tuple(getattr(value, f.name) for f in fields(value))
    if isinstance(value, tuple | list):
        return f"{name}({''.join(map(_word, value))})"
    raise NotKeptError(f"no word for {value!r}")


@cache
def _surroundings() -> str:
    """Return what is the same for all programs of this process."""
    device = jax.local_devices()[0]
    sources = hashlib.sha256()
    package = Path(__file__).parent
    files = sorted(package.rglob("*.py"))
    if not files:
        raise NotKeptError("no source files")  # in an archive, say
    for path in files:
        sources.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    client = device.client
    versions = [version(name) for name in ("jax", "jaxlib", "numpy", "optax")]
    flags = [os.environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")]
    machine = device.platform, device.device_kind, client.platform_version, _processor()
    return repr((sources.hexdigest(), versions, flags, machine, os.cpu_count(), jax.device_count()))


def _processor() -> str:
    """Return the model and the instruction sets of the processor, as far as they are known."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0].splitlines()
        return "".join(
            line for line in lines if line.startswith(("model name", "flags", "Features"))
        )
    import platform

    return f"{platform.machine()} {platform.processor()}"


def _usual_folder() -> Path | str:
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "jsvm"
    except RuntimeError:  # no home
        return "off"


def _opened(folder: str | Path) -> Path | None:
    """Make the folder if needed; None if it is not, or not only, the user's own."""
    if str(folder) == "off" or not hasattr(os, "getuid"):
        return None
    try:
        path = Path(folder).expanduser().absolute()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = path.stat()
    except OSError:
        return None
    if facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        return None
    return path


def _load(path: Path, tree: Any) -> Any:
    """Return the executable in a file; None if there is none, or not a proper one."""
    begun = time.perf_counter()
    try:
        if path.stat().st_uid != os.getuid():
            return None
        content = path.read_bytes()
        size = len(MAGIC) + 32
        if content[: len(MAGIC)] != MAGIC:
            return None
        if hashlib.sha256(content[size:]).digest() != content[len(MAGIC) : size]:
            return None
        payload, outputs, calls_lapack = pickle.loads(content[size:])
        if calls_lapack:
            _initialise_lapack()
        out_tree = jax.tree.structure(outputs)
        executable = serialize_executable.deserialize_and_load(payload, tree, out_tree)
        os.utime(path)  # the oldest go first
    except Exception:  # whatever is wrong with it: compile
        return None
    jax.monitoring.record_event_duration_secs(LOADED, time.perf_counter() - begun)
    return executable


@cache
def _initialise_lapack() -> None:
    """Have JAX look up the functions of LAPACK, as it does when it lowers a call of them."""
    jax.jit(jax.lax.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), np.float32))


def _store(path: Path, executable: Any, calls_lapack: bool) -> None:
    """Write an executable: all of it or nothing, whatever other processes do."""
    with suppress(Exception):  # what was compiled is never lost to a disk that is full
        payload, _, out_tree = serialize_executable.serialize(executable)
        outputs = jax.tree.unflatten(out_tree, range(out_tree.num_leaves))
        body = pickle.dumps((payload, outputs, calls_lapack))
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        unfinished = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(body).digest() + body)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        _make_room(path.parent.glob(f"*{SUFFIX}"))


def _make_room(paths: Iterable[Path]) -> None:
    """Remove the files that were not used for the longest time, if all are too large together."""
    files = []
    for path in paths:
        with suppress(OSError):
            facts = path.stat()
            files.append((facts.st_mtime_ns, facts.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= MOST_BYTES:
            break
        with suppress(OSError):
            path.unlink()
        total -= size
