"""Compiled programs on disk, for the next process."""

from pathlib import Path

import jax

SHORTEST_COMPILATION = 0.1  # seconds; programs that compile faster are not kept


def keep_compiled_programs(folder: str | Path | None = None) -> Path:
    """Keep compiled programs on disk, so that the next process does not compile them again.

    This switches on JAX's persistent compilation cache, for the whole process; nothing else in jsvm
    changes a setting of JAX.

    Parameters
    ----------
    folder : path, optional
        Where to keep them; by default ``~/.cache/jsvm``.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import jsvm
    >>> jsvm.keep_compiled_programs("programs")  # doctest: +SKIP
    """
    folder = Path.home() / ".cache" / "jsvm" if folder is None else Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_COMPILATION)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return folder
