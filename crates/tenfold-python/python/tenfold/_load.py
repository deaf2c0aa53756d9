"""Loading all of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _frameworks, _tenfold
from ._errors import ArgumentError
from ._open import opened
from ._progress import watched
from ._tenfold import Archive, Tensor

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from ._progress import Told
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
    framework = FRAMEWORKS.get(framework, framework)
    if framework not in FRAMEWORKS.values():
        raise ArgumentError(f"framework is numpy, torch, jax, tensorflow or mlx, not {framework!r}")
    if device not in (None, "cpu") and framework not in ("torch", "jax"):
        raise ArgumentError(f"device= is for torch and jax; arrays of {framework} are not put on {device!r}")
    if copy is not None and framework not in ("numpy", "torch"):
        raise ArgumentError(f"copy= is for numpy and torch; {framework} decides by itself")
    if not isinstance(source, Archive):
        open_options["threads"] = threads
    archive = select(opened("load", source, open_options), include, exclude)
    if dtype is not None:
        archive = _tenfold.cast(archive, [(dtype, None)])
    if framework == "numpy":
        with watched(progress) as told:
            return _frameworks.archive_numpy(archive, copy, told, threads)
    if framework == "torch":
        from ._torch import archive_torch

        with watched(progress) as told:
            return archive_torch(archive, device, copy, told, threads)
    make: dict[str, Callable[[Tensor], Any]] = {
        "jax": lambda tensor: tensor.jax(device=device),
        "tensorflow": lambda tensor: tensor.tensorflow(),
        "mlx": lambda tensor: tensor.mlx(),
    }
    with watched(progress) as told:
        return _one_by_one(archive, make[framework], told)


#: Other names for frameworks.
FRAMEWORKS = {
    "np": "numpy",
    "numpy": "numpy",
    "pt": "torch",
    "torch": "torch",
    "pytorch": "torch",
    "jax": "jax",
    "flax": "jax",
    "tf": "tensorflow",
    "tensorflow": "tensorflow",
    "mlx": "mlx",
}


def _one_by_one(archive: Archive, make: Callable[[Tensor], Any], told: Told) -> dict[str, Any]:
    made = {}
    done, total = 0, archive.nbytes
    for name, tensor in archive.items():
        made[name] = make(tensor)
        done += tensor.nbytes
        if told is not None:
            told(done, total)
    return made


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


def load_model(
    module: Any,
    source: Source | Archive,
    *,
    strict: bool = True,
    device: Any = None,
    assign: bool = False,
    **open_options: Any,
) -> tuple[list[str], list[str]]:
    """Loads a file into a module of PyTorch, and gives the names that it misses and those that it does not know.

    Names that `save_model` left out because they are the same tensor are not missing. `strict` is about names; what else is
    given is for `open`.

    >>> import tempfile, os, torch, tenfold
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> module = torch.nn.Linear(2, 3)
    >>> report = tenfold.save_model(module, path)
    >>> tenfold.load_model(torch.nn.Linear(2, 3), path)
    ([], [])
    """
    archive = opened("load_model", source, open_options)
    state = archive.torch(device=device, copy=True if assign else None)
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
