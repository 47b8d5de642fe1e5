"""Compiled programs that outlive the process."""

from pathlib import Path

import jax


def keep_compiled_programs(folder: str | Path | None = None) -> Path:
    """Keep compiled programs on disk: the first fit of a size is then slow only once.

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
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return folder
