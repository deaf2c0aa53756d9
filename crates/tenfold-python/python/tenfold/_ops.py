"""Operations on files and archives. Each lets other threads run, and Ctrl-C stops it and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _tenfold
from ._errors import ArgumentError, Error
from ._load import select
from ._open import in_memory, pairs
from ._open import open as open_
from ._progress import watched
from ._results import ArchiveStats, Diff, Digests, Inspection, Limits, Report, Scan, Verification
from ._save import nbytes_of, report, request, retyped
from ._tenfold import Archive

if TYPE_CHECKING:
    from ._types import CastSpec, Patterns, Progress, Rename, Source


def _opened(source: Source | Archive | Sequence[Source], options: Mapping[str, Any] | None = None) -> Archive:
    if isinstance(source, Archive):
        return source
    # What is only copied is read, not mapped: a file that shrinks meanwhile is an error then, never a signal.
    return open_(source, **({"mmap": False} | dict(options or {})))


def _title(source: Any) -> str:
    """What a source is called in documents."""
    if isinstance(source, Archive):
        return os.fspath(source.path) if source.path is not None else ""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return str(getattr(source, "name", ""))


def _selected(archive: Archive, include: Patterns, exclude: Patterns, dequantize: bool) -> Archive:
    """The tensors that patterns leave, and quantized ones as numbers where that is asked for: what is quantized together is
    one tensor before any is left out."""
    if not dequantize:
        return select(archive, include, exclude)
    return _tenfold.dequantize(select(_tenfold.grouped(archive), include, exclude))


def _inputs(source: Any) -> list[str]:
    return [_title(one) for one in source] if isinstance(source, (list, tuple)) else [_title(source)]


def inspect(source: Source | Archive, *, full: bool = False, **open_options: Any) -> Inspection:
    """What is in a file. `full` also has lists of more than 64 entries.

    >>> import tenfold
    >>> tenfold.inspect("fixtures/safetensors/valid/scalars.safetensors").format
    'safetensors'
    """
    archive = _opened(source, open_options)
    return Inspection._of(_tenfold.inspect(archive, _title(source), full), archive)


def verify(
    source: Source | Archive,
    *,
    strict: bool = False,
    content: bool = False,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> Verification:
    """Whether a file is sound: it keeps the rules of its format, and its checksums match.

    `strict` counts deviations that readers tolerate, `content` also looks for NaN and infinities. A file that cannot be
    opened is not sound; that it cannot be read from the disk is an `OSError`.

    >>> import tenfold
    >>> bool(tenfold.verify("fixtures/safetensors/valid/scalars.safetensors"))
    True
    """
    import warnings

    title = _title(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive = _opened(source, open_options)
    except Error as error:
        if error.kind in ("argument", "canceled"):
            raise
        return Verification._of(_unsound(title, error))
    with watched(progress) as told:
        return Verification._of(json.loads(_tenfold.verify(archive, title, strict, content, told, threads)))


def _unsound(title: str, error: Error) -> dict[str, Any]:
    """The document for a file that cannot be opened."""
    place = None if error.offset is None else [error.offset, error.offset + (error.length or 0)]
    found = {
        "severity": "error",
        "rule": error.rule,
        "tensor": error.tensor,
        "file": title,
        "range": place,
        "message": error.message + (f"; {error.hint}" if error.hint and "checksums=" not in error.hint else ""),
    }
    return {
        "schema": "tenfold.verify/1",
        "file": title,
        "format": error.format,
        "version": None,
        "sound": False,
        "findings": [found],
        "notes": [],
    }


def digest(
    source: Source | Archive,
    *,
    dequantize: bool = False,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> Digests:
    """What a file holds, as SHA-256 that do not depend on the format. `dequantize` looks at quantized tensors as the numbers
    that they stand for.

    >>> import tenfold
    >>> path = "fixtures/safetensors/valid/scalars.safetensors"
    >>> tenfold.digest(path) == tenfold.digest(tenfold.open(path))
    True
    """
    archive = _selected(_opened(source, open_options), None, None, dequantize)
    with watched(progress) as told:
        return Digests._of(_tenfold.digest(archive, _title(source), told, threads))


def diff(
    a: Source | Archive,
    b: Source | Archive,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    ulp: int | None = None,
    ignore_dtype: bool = False,
    ignore_metadata: bool = False,
    names_only: bool = False,
    include: Patterns = None,
    exclude: Patterns = None,
    dequantize: bool = False,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> Diff:
    """What is different between two files, of any formats. True in a condition if nothing is. `dequantize` looks at quantized
    tensors as the numbers that they stand for.

    >>> import tenfold
    >>> path = "fixtures/safetensors/valid/scalars.safetensors"
    >>> bool(tenfold.diff(path, path))
    True
    """
    tolerance = None
    if (rtol, atol, ulp) != (None, None, None):
        tolerance = (rtol or 0.0, atol or 0.0, ulp or 0)
    first, second = (_selected(_opened(one, open_options), include, exclude, dequantize) for one in (a, b))
    with watched(progress) as told:
        text = _tenfold.diff(
            first,
            second,
            (_title(a), _title(b)),
            tolerance,
            ignore_dtype,
            ignore_metadata,
            names_only,
            told,
            threads,
        )
    return Diff._of(text)


def scan(source: Source, *, limits: Limits | None = None, progress: Progress = None) -> Scan:
    """What the pickles in a file would import if somebody loaded them. True in a condition if all of it is harmless.

    A file of any kind is looked at: archives of zip and tar, checkpoints of PyTorch, arrays of objects of NumPy, files of
    joblib, plain pickles. Nothing is imported and nothing is run.

    >>> import tenfold
    >>> bool(tenfold.scan("fixtures/pytorch/valid/checkpoint.pt"))
    True
    >>> found = tenfold.scan(b"cposix\\nsystem\\n(X\\x04\\x00\\x00\\x00truetR.")
    >>> found
    <Scan: dangerous, 1 pickle, 1 dangerous import>
    >>> print(found.dangerous[0])
    posix.system, which runs commands
    """
    if isinstance(source, (str, os.PathLike)):
        found, name = os.fsdecode(source), None
    else:
        found, name = in_memory(source)
    with watched(progress) as told:
        return Scan._of(_tenfold.scan(found, name, _title(source), limits, told))


def stats(
    source: Source | Archive,
    *,
    bins: int | None = None,
    include: Patterns = None,
    exclude: Patterns = None,
    dequantize: bool = False,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> ArchiveStats:
    """What the numbers of a file are like, by the names of the tensors, and of all as ``total``. `dequantize` looks at
    quantized tensors as the numbers that they stand for.

    >>> import tenfold
    >>> tenfold.stats("fixtures/safetensors/valid/scalars.safetensors").total.nans >= 0
    True
    """
    archive = _selected(_opened(source, open_options), include, exclude, dequantize)
    with watched(progress) as told:
        return ArchiveStats._of(_tenfold.stats(archive, _title(source), bins, told, threads))


def _written(
    command: str,
    archive: Archive,
    source: Any,
    path: Any,
    progress: Progress,
    threads: int,
    more: dict[str, Any] | None = None,
    **asked: Any,
) -> Report:
    with watched(progress) as told:
        text = _tenfold.write(archive, path, request(command, inputs=_inputs(source), **asked), told, threads)
    return report(text, path, **(more or {}))


def _is_directory(path: Any) -> bool:
    return not hasattr(path, "write") and os.fspath(path).endswith(("/", os.sep))


def convert(
    source: Source | Archive | Sequence[Source],
    path: Any,
    *,
    to: str | None = None,
    version: str | None = None,
    include: Patterns = None,
    exclude: Patterns = None,
    rename: Rename = None,
    cast: CastSpec = None,
    quantize: CastSpec = None,
    imatrix: str | os.PathLike[str] | None = None,
    pure: bool = False,
    dequantize: bool = False,
    zstd: int | Mapping[str, int] | None = None,
    checksums: str | bool | None = None,
    shard_size: int | str | None = None,
    file_per_tensor: bool = False,
    sparse: str = "as-is",
    allow: str = "rearranged",
    verify: bool = True,
    check: bool = False,
    force: bool = False,
    sync: bool = True,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
    progress: Progress = None,
    threads: int = 0,
    storage_options: Mapping[str, Any] | None = None,
    **open_options: Any,
) -> Report:
    """Writes the same tensors to another file, in the format that its ending names or `to` says.

    What the format would lose is a `LossError` that lists it, before anything is written, unless `allow` accepts it.
    With a ``/`` at its end, `path` is a new directory with a file for every tensor, or with the shards.

    Parameters
    ----------
    rename : mapping, function or list of (pattern, replacement), optional
        Other names; patterns are regular expressions.
    verify : bool
        Compare the checksums of the source first.
    check : bool
        Compare the digests of all tensors before the output gets its name.
    dry_run : bool
        Say what would be written and lost, and write nothing.
    storage_options : mapping, optional
        How URLs are reached, as in `open`: those that are read, and the one that is written.

    Examples
    --------
    >>> import tempfile, os, tenfold
    >>> path = os.path.join(tempfile.mkdtemp(), "scalars.zt")
    >>> report = tenfold.convert("fixtures/safetensors/valid/scalars.safetensors", path)
    >>> report.format
    'ztensor'
    """
    if storage_options is not None:
        open_options["storage_options"] = storage_options
    archive = _selected(_opened(source, open_options), include, exclude, dequantize)
    if rename is not None:
        archive = _tenfold.rename(archive, _new_names(archive, rename))
    archive = retyped(archive, cast, quantize, imatrix, pure)
    directory = _is_directory(path)
    return _written(
        "convert",
        archive,
        source,
        path,
        progress,
        threads,
        to=to,
        version=version,
        zstd=zstd,
        checksums=checksums,
        shard_size=shard_size,
        file_per_tensor=file_per_tensor or (directory and shard_size is None),
        directory=directory or file_per_tensor,
        sparse=sparse,
        allow=allow,
        verify=verify,
        check=check,
        force=force,
        sync=sync,
        dry_run=dry_run,
        options=options,
        storage_options=pairs(storage_options),
    )


def _new_names(archive: Archive, rules: Rename) -> dict[str, str]:
    """Old names and new ones. A rule that matches nothing is mostly a slip of the pen."""
    names: dict[str, str] = {}
    if isinstance(rules, Mapping):
        for old in rules:
            if old not in archive:
                raise ArgumentError(f"there is no tensor {old!r} to be renamed")
        return dict(rules)
    if callable(rules):
        for name in archive:
            new = rules(name)
            if new is not None and new != name:
                names[name] = new
        return names
    patterns = [(re.compile(pattern), replacement, pattern) for pattern, replacement in rules or ()]
    used = set()
    for name in archive:
        new = name
        for pattern, replacement, text in patterns:
            new, count = pattern.subn(replacement, new)
            if count:
                used.add(text)
        if new != name:
            names[name] = new
    for _, _, text in patterns:
        if text not in used:
            raise ArgumentError(f"the rule {text!r} matches no tensor")
    return names


def rename(
    source: Source | Archive,
    path: Any,
    *,
    rules: Rename,
    to: str | None = None,
    force: bool = False,
    check: bool = False,
    dry_run: bool = False,
    progress: Progress = None,
    threads: int = 0,
    **options: Any,
) -> Report:
    """Writes the same tensors under other names: by a mapping, a function, or regular expressions with replacements."""
    opened = _opened(source)
    names = _new_names(opened, rules)
    archive = _tenfold.rename(opened, names)
    more = {"renamed": {old: names[old] for old in opened if old in names and names[old] != old}}
    return _written(
        "rename",
        archive,
        source,
        path,
        progress,
        threads,
        more,
        to=to,
        rewrite=True,
        force=force,
        check=check,
        dry_run=dry_run,
        **options,
    )


def extract(
    source: Source | Archive,
    path: Any,
    tensors: Sequence[str] = (),
    *,
    include: Patterns = None,
    exclude: Patterns = None,
    to: str | None = None,
    force: bool = False,
    check: bool = False,
    dry_run: bool = False,
    progress: Progress = None,
    threads: int = 0,
    **options: Any,
) -> Report:
    """Writes some of the tensors: those that are named, or those that patterns leave."""
    opened = _opened(source)
    if tensors:
        for name in tensors:
            opened[name]
        wanted = set(tensors)
        archive = opened._take([place for place, name in enumerate(opened) if name in wanted])
    else:
        archive = select(opened, include, exclude)
    if not len(archive) and len(opened):
        raise ArgumentError(f"include and exclude leave none of {len(opened)} tensors")
    directory = _is_directory(path)
    return _written(
        "extract",
        archive,
        source,
        path,
        progress,
        threads,
        to=to,
        rewrite=True,
        directory=directory,
        file_per_tensor=directory,
        force=force,
        check=check,
        dry_run=dry_run,
        **options,
    )


def merge(
    sources: Sequence[Source | Archive],
    path: Any,
    *,
    prefer: str | None = None,
    to: str | None = None,
    force: bool = False,
    check: bool = True,
    dry_run: bool = False,
    progress: Progress = None,
    threads: int = 0,
    **options: Any,
) -> Report:
    """Writes the tensors of several files as one. A tensor that is in two of them is an error, unless `prefer` says whether
    the ``"first"`` or the ``"last"`` counts."""
    if prefer not in (None, "first", "last"):
        raise ArgumentError(f"prefer is 'first' or 'last', not {prefer!r}")
    archives = [_opened(source) for source in sources]
    archive, conflicts = _tenfold.merge(archives, prefer)
    titles = [_title(source) for source in sources]
    rows = [
        {
            "what": "tensor" if is_tensor else "metadata",
            "name": name,
            "kept": titles[kept],
            "left_out": titles[left],
        }
        for is_tensor, name, kept, left in conflicts
    ]
    same = len({(one.format, one.version) for one in archives}) == 1
    return _written(
        "merge",
        archive,
        list(sources),
        path,
        progress,
        threads,
        {"conflicts": rows},
        to=to,
        rewrite=same,
        force=force,
        check=check,
        dry_run=dry_run,
        **options,
    )


def split(
    source: Source | Archive,
    directory: Any,
    *,
    by: int | str,
    to: str | None = None,
    check: bool = True,
    dry_run: bool = False,
    progress: Progress = None,
    threads: int = 0,
    **options: Any,
) -> Report:
    """Writes the tensors to several files in a new directory: so many parts, parts of at most a size such as ``"5GB"``, or a
    file for each of the ``"layers"``."""
    archive = _opened(source)
    if by == "layers":
        shards = ("layers", 0)
    elif isinstance(by, int):
        shards = ("parts", by)
    else:
        shards = ("size", nbytes_of(by))
    return _written(
        "split",
        archive,
        source,
        directory,
        progress,
        threads,
        to=to or archive.format or None,
        rewrite=True,
        shards=shards,
        directory=True,
        name=Path(_title(source)).name.partition(".")[0] or "model",
        check=check,
        dry_run=dry_run,
        **options,
    )


def edit_metadata(
    source: Source | Archive,
    path: Any = None,
    *,
    set: Mapping[str, Any] | None = None,
    unset: Sequence[str] = (),
    tensor: str | None = None,
    to: str | None = None,
    force: bool | None = None,
    check: bool = False,
    dry_run: bool = False,
    progress: Progress = None,
    threads: int = 0,
    **options: Any,
) -> Report:
    """Writes the file again with other metadata, of the file or of a tensor. Without a path the file itself is replaced.

    A number gets the width that the value had before; numbers of NumPy keep their own.
    """
    archive = _opened(source)
    if path is None:
        path = archive.path
        if path is None:
            raise ArgumentError("which file is to be written? the source has no path")
        force = True if force is None else force
    before = archive.metadata if tensor is None else archive[tensor].metadata
    for key in unset:
        if key not in before:
            raise KeyError(key)
    changed = list(dict.fromkeys([*unset, *(set or {})]))
    edited = _tenfold.edit_metadata(archive, tensor, list((set or {}).items()), list(unset))
    return _written(
        "meta-edit",
        edited,
        source,
        path,
        progress,
        threads,
        {"changed": changed},
        to=to or archive.format or None,
        rewrite=True,
        force=bool(force),
        check=check,
        dry_run=dry_run,
        **options,
    )


__all__ = [
    "convert",
    "diff",
    "digest",
    "edit_metadata",
    "extract",
    "inspect",
    "merge",
    "rename",
    "scan",
    "split",
    "stats",
    "verify",
]
