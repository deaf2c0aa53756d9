"""Saving."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _tenfold
from ._errors import ArgumentError
from ._inputs import build
from ._open import is_url, pairs
from ._progress import watched
from ._results import Report
from ._tenfold import Archive

if TYPE_CHECKING:
    from ._types import CastSpec, Progress, Tensors


def rules(spec: Any) -> list[tuple[Any, str | None]]:
    """A type for all tensors, or types by patterns."""
    if spec is None:
        return []
    if isinstance(spec, Mapping):
        return [(dtype, pattern) for pattern, dtype in spec.items()]
    return [(spec, None)]


def nbytes_of(size: int | str) -> int:
    """A size such as ``"5GB"`` or ``"500MiB"`` in bytes."""
    if isinstance(size, int):
        return size
    units = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
    units |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
    text = size.strip().lower().replace(" ", "")
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = units.get(text[len(number) :])
    try:
        if unit is None or float(number) <= 0:
            raise ValueError
        return int(float(number) * unit)
    except ValueError:
        raise ArgumentError(f"{size!r} is no size; '5GB' and '500MiB' are") from None


def by_extension(path: Any) -> str | None:
    """The id of the format that a path's ending names."""
    if hasattr(path, "write"):
        return None
    ending = os.fspath(path).lower()
    for id, _, extensions, _, _ in _tenfold.formats():
        if any(ending.endswith("." + extension) for extension in extensions):
            return str(id)
    return None


def request(
    function: str,
    *,
    inputs: Sequence[str] = (),
    to: str | None = None,
    version: str | None = None,
    zstd: int | Mapping[str, int] | None = None,
    checksums: str | bool | None = None,
    shard_size: int | str | None = None,
    sparse: str = "as-is",
    allow: str = "rearranged",
    options: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """What Rust is asked to write."""
    command = "meta-edit" if function == "edit_metadata" else function
    asked: dict[str, Any] = {"function": function, "command": command, "inputs": list(inputs), "to": to, "version": version}
    asked["zstd"] = (
        []
        if zstd is None
        else [(level, pattern) for pattern, level in zstd.items()]
        if isinstance(zstd, Mapping)
        else [(zstd, None)]
    )
    named = {None: "keep", True: "crc32c", False: "none"}
    asked["checksums"] = checksums if isinstance(checksums, str) else named[checksums]
    asked["shards"] = None if shard_size is None else ("size", nbytes_of(shard_size))
    asked["sparse"] = sparse
    asked["allow"] = allow
    asked["options"] = [(str(key), str(value)) for key, value in (options or {}).items()]
    return asked | more


def save(
    path: Any,
    tensors: Tensors | Archive,
    *,
    metadata: Mapping[str, Any] | None = None,
    tensor_metadata: Mapping[str, Mapping[str, Any]] | None = None,
    format: str | None = None,
    version: str | None = None,
    cast: CastSpec = None,
    quantize: CastSpec = None,
    imatrix: str | os.PathLike[str] | None = None,
    pure: bool = False,
    zstd: int | Mapping[str, int] | None = None,
    checksums: str | bool | None = None,
    shard_size: int | str | None = None,
    shared: str = "copy",
    sparse: str = "keep",
    allow: str = "rearranged",
    force: bool = True,
    sync: bool = True,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
    progress: Progress = None,
    threads: int = 0,
    storage_options: Mapping[str, Any] | None = None,
) -> Report:
    """Writes tensors to a file, in the format that its ending names. It appears whole or not at all.

    Inputs are arrays of NumPy, tensors of PyTorch, JAX, TensorFlow or MLX, sparse matrices of SciPy, anything with DLPack or
    a buffer, `Tensor`, `Lazy`, or a whole `Archive`. Memory is read without the interpreter's lock: nobody may change it
    meanwhile. Tensors of PyTorch and arrays that are not contiguous, or not in memory, are copied one at a time.

    Parameters
    ----------
    path : path, URL of a bucket, or file object
        A file is replaced, unless `force=False`. A directory is not: with ``/`` at its end, or a format that is one, such as
        Zarr, it must be new.
    metadata, tensor_metadata : mapping, optional
        What the file says about itself, and about its tensors by their names. Numbers of NumPy keep their width.
    cast, quantize : optional
        Another type for all tensors, or a mapping from patterns of names to types. Matrices are quantized to a type of GGUF's
        or to a mixture of llama.cpp's, such as ``"Q4_K_M"``; in a mapping ``"keep"`` leaves tensors as they are.
    imatrix : path, optional
        How much columns count where numbers are quantized, as llama-imatrix writes it.
    pure : bool
        A mixture gives all tensors the type that most have in it.
    zstd : int or mapping, optional
        The level to compress with.
    shard_size : int or str, optional
        Write several files of at most about so many bytes: ``"5GB"``.
    shared : {"copy", "drop", "error"}
        What becomes of tensors that share memory: each is written whole with a warning; the first is written and the metadata
        says which others are the same; or nothing is written.
    sparse : {"keep", "as-is", "all"}
        Sparse tensors stay sparse in a version of the format that can; only in the usual version; or all tensors become so.
    allow : {"rearranged", "changed", "dropped"}
        The worst that may happen to metadata.
    storage_options : mapping, optional
        How a URL is reached, as in `open`.

    Examples
    --------
    >>> import numpy, tempfile, os, tenfold
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> tenfold.save(path, {"w": numpy.zeros((2, 3), "float32")}, metadata={"by": "me"})
    <Report model.safetensors: safetensors, 1 tensor, 120 B>
    """
    target = format or by_extension(path)
    archive, groups = _archive_of(tensors, metadata, tensor_metadata, shared, target)
    archive = retyped(archive, cast, quantize, imatrix, pure)
    asked = request(
        "save",
        to=format,
        version=version,
        zstd=zstd,
        checksums=checksums,
        shard_size=shard_size,
        sparse=sparse,
        allow=allow,
        options=options,
        force=force,
        sync=sync,
        dry_run=dry_run,
        storage_options=pairs(storage_options),
    )
    with watched(progress) as told:
        text = _tenfold.write(archive, path, asked, told, threads)
    return report(text, path, groups)


def report(text: str, path: Any, shared: tuple[tuple[str, ...], ...] = (), **more: Any) -> Report:
    """What Rust says that it wrote."""
    if hasattr(path, "write"):
        return Report._of(text, None, str(getattr(path, "name", "")), shared, **more)
    if is_url(path):
        return Report._of(text, None, path.partition("?")[0], shared, **more)
    return Report._of(text, Path(path), os.fspath(path), shared, **more)


def _archive_of(
    tensors: Tensors | Archive,
    metadata: Mapping[str, Any] | None,
    tensor_metadata: Mapping[str, Mapping[str, Any]] | None,
    shared: str,
    target: str | None,
) -> tuple[Archive, tuple[tuple[str, ...], ...]]:
    if not isinstance(tensors, Archive):
        return build(tensors, metadata, tensor_metadata, shared, target)
    archive = tensors
    if metadata:
        archive = _tenfold.edit_metadata(archive, None, list(metadata.items()), [])
    for name, said in (tensor_metadata or {}).items():
        archive = _tenfold.edit_metadata(archive, name, list(said.items()), [])
    return archive, ()


def retyped(
    archive: Archive,
    cast: CastSpec,
    quantize: CastSpec,
    imatrix: str | os.PathLike[str] | None = None,
    pure: bool = False,
) -> Archive:
    """Other types for tensors."""
    if cast is not None:
        archive = _tenfold.cast(archive, rules(cast))
    if quantize is not None:
        archive = _tenfold.quantize(archive, rules(quantize), imatrix, pure)
    return archive


def dumps(
    tensors: Tensors | Archive,
    *,
    format: str,
    metadata: Mapping[str, Any] | None = None,
    tensor_metadata: Mapping[str, Mapping[str, Any]] | None = None,
    version: str | None = None,
    cast: CastSpec = None,
    quantize: CastSpec = None,
    imatrix: str | os.PathLike[str] | None = None,
    pure: bool = False,
    zstd: int | Mapping[str, int] | None = None,
    checksums: str | bool | None = None,
    shared: str = "copy",
    sparse: str = "keep",
    allow: str = "rearranged",
    options: Mapping[str, str] | None = None,
    progress: Progress = None,
    threads: int = 0,
) -> bytes:
    """`save` to bytes.

    >>> import numpy, tenfold
    >>> tenfold.dumps({"w": numpy.zeros(2, "uint8")}, format="npz")[:2]
    b'PK'
    """
    archive, _ = _archive_of(tensors, metadata, tensor_metadata, shared, format)
    archive = retyped(archive, cast, quantize, imatrix, pure)
    asked = request(
        "dumps", to=format, version=version, zstd=zstd, checksums=checksums, sparse=sparse, allow=allow, options=options
    )
    with watched(progress) as told:
        return _tenfold.dumps(archive, asked, told, threads)


def save_model(module: Any, path: Any, **options: Any) -> Report:
    """Saves the tensors of a module of PyTorch. Of several names for one tensor the first is written, and the metadata says
    which others there are. What else is given is for `save`.

    >>> import os, tempfile, torch, tenfold
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> tenfold.save_model(torch.nn.Linear(2, 3), path).tensors
    2
    """
    options.setdefault("shared", "drop")
    return save(path, module.state_dict(), **options)
