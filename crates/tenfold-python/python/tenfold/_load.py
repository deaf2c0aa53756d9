"""Loading all of a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _frameworks, _tenfold
from ._errors import ArgumentError
from ._open import open as open_
from ._tenfold import Archive, Tensor

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from ._types import Buffer, DTypeLike, Patterns, Progress, Source


def select(
    archive: Archive,
    include: Patterns = None,
    exclude: Patterns = None,
    where: Callable[[Tensor], bool] | None = None,
) -> Archive:
    """The tensors that patterns and a function leave."""
    included = None if include is None else [include] if isinstance(include, str) else list(include)
    excluded = [] if exclude is None else [exclude] if isinstance(exclude, str) else list(exclude)
    places = archive._matching(included, excluded)
    if where is not None:
        tensors = list(archive.values())
        places = [place for place in places if where(tensors[place])]
    if len(places) == len(archive):
        return archive
    return archive._take(places)


@overload
def load(
    source: Source | Archive,
    *,
    framework: Literal["numpy", "np"] = "numpy",
    device: Any = None,
    include: Patterns = None,
    exclude: Patterns = None,
    copy: bool | None = None,
    dtype: DTypeLike | None = None,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> dict[str, NDArray[Any]]: ...
@overload
def load(
    source: Source | Archive,
    *,
    framework: Literal["torch", "pt", "pytorch"],
    device: Any = None,
    include: Patterns = None,
    exclude: Patterns = None,
    copy: bool | None = None,
    dtype: DTypeLike | None = None,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> dict[str, torch.Tensor]: ...
@overload
def load(
    source: Source | Archive,
    *,
    framework: str,
    device: Any = None,
    include: Patterns = None,
    exclude: Patterns = None,
    copy: bool | None = None,
    dtype: DTypeLike | None = None,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> dict[str, Any]: ...
def load(
    source: Source | Archive,
    *,
    framework: str = "numpy",
    device: Any = None,
    include: Patterns = None,
    exclude: Patterns = None,
    copy: bool | None = None,
    dtype: DTypeLike | None = None,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> dict[str, Any]:
    """All tensors of a file, or those that patterns leave, by their names.

    Arrays lie over the mapped file where they can (`copy=None`); `copy=True` gives memory of their own.

    Parameters
    ----------
    framework : {"numpy", "torch", "jax", "tensorflow", "mlx"}
        Whose arrays.
    device : optional
        Where tensors of PyTorch or JAX go.
    include, exclude : str or list of str, optional
        Patterns of names, in which ``*`` crosses dots.
    dtype : optional
        The type that all numbers are cast to.
    progress : bool or callable, optional
        Shows a bar, or is called with the bytes that are done and those in all.

    Examples
    --------
    >>> import tenfold
    >>> tenfold.load("fixtures/safetensors/valid/scalars.safetensors", include="no such name")
    {}
    """
    archive = source if isinstance(source, Archive) else open_(source, threads=threads, **open_options)
    archive = select(archive, include, exclude)
    if dtype is not None:
        archive = _tenfold.cast(archive, [(dtype, None)])
    if framework in ("numpy", "np"):
        with watched(progress) as told:
            return _frameworks.archive_numpy(archive, copy, told, threads)
    if framework in ("torch", "pt", "pytorch"):
        return _frameworks.archive_torch(archive, device, copy)
    if framework in ("jax", "flax"):
        return {name: tensor.jax(device=device) for name, tensor in archive.items()}
    if framework in ("tensorflow", "tf"):
        return {name: tensor.tensorflow() for name, tensor in archive.items()}
    if framework == "mlx":
        return {name: tensor.mlx() for name, tensor in archive.items()}
    raise ArgumentError(f"framework is numpy, torch, jax, tensorflow or mlx, not {framework!r}")


@overload
def loads(data: Buffer, *, framework: Literal["numpy", "np"] = "numpy", **options: Any) -> dict[str, NDArray[Any]]: ...
@overload
def loads(data: Buffer, *, framework: Literal["torch", "pt", "pytorch"], **options: Any) -> dict[str, torch.Tensor]: ...
@overload
def loads(data: Buffer, *, framework: str, **options: Any) -> dict[str, Any]: ...
def loads(data: Buffer, *, framework: str = "numpy", **options: Any) -> dict[str, Any]:
    """`load` for bytes that are in memory.

    >>> import numpy, tenfold
    >>> data = tenfold.dumps({"w": numpy.arange(3)}, format="safetensors")
    >>> tenfold.loads(data)["w"]
    array([0, 1, 2])
    """
    return load(data, framework=framework, **options)


class watched:
    """Progress as a function: a bar, a line, or what was given."""

    def __init__(self, progress: Progress) -> None:
        self._given = progress
        self._bar: Any = None

    def __enter__(self) -> Callable[[int, int], object] | None:
        if self._given is None or self._given is False:
            return None
        if callable(self._given):
            return self._given
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return self._line if sys.stderr.isatty() else None
        self._bar = tqdm(total=0, unit="B", unit_scale=True, unit_divisor=1024)
        return self._update

    def _update(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.n = done
        self._bar.refresh()

    def _line(self, done: int, total: int) -> None:
        sys.stderr.write(f"\r{100 * done // max(1, total)} %")
        sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._given is True and sys.stderr.isatty():
            sys.stderr.write("\r     \r")


def load_model(
    module: Any, source: Source | Archive, *, strict: bool = True, device: Any = None, assign: bool = False
) -> tuple[list[str], list[str]]:
    """Loads a file into a module of PyTorch, and gives the names that it misses and those that it does not know.

    Names that `save_model` left out because they are the same tensor are not missing.
    """
    archive = source if isinstance(source, Archive) else open_(source)
    state = _frameworks.archive_torch(archive, device, True if assign else None)
    found = module.load_state_dict(state, strict=False, assign=assign)
    known = module.state_dict()
    loaded = {known[name].data_ptr() for name in state if name in known and known[name].numel()}
    missing = [name for name in found.missing_keys if known[name].data_ptr() not in loaded or not known[name].numel()]
    unexpected = list(found.unexpected_keys)
    if strict and (missing or unexpected):
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"unexpected: {', '.join(unexpected)}"] if unexpected else []
        raise RuntimeError(f"{type(module).__name__} and the file do not have the same tensors; {'; '.join(parts)}")
    return missing, unexpected
