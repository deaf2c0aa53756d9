"""Operations that write files. Each lets other threads run, and Ctrl-C stops it and leaves nothing behind."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _tenfold
from ._errors import ArgumentError
from ._load import select
from ._open import pairs
from ._ops import opened_for, selected, title_of
from ._progress import watched
from ._results import Report
from ._save import nbytes_of, report, request, retyped
from ._tenfold import Archive

if TYPE_CHECKING:
    from ._types import CastSpec, Patterns, Progress, Rename, Source


def _inputs(source: Any) -> list[str]:
    return [title_of(one) for one in source] if isinstance(source, (list, tuple)) else [title_of(source)]


#: What `rename`, `extract`, `merge`, `split` and `edit_metadata` take beside what they name.
_WRITING = frozenset(
    {"allow", "checksums", "options", "shard_size", "sparse", "storage_options", "sync", "verify", "version", "zstd"}
)


def _rewritten(function: str, source: Source | Archive, options: Mapping[str, Any]) -> Archive:
    """What is written again, once it is known that all that was asked for is understood."""
    for name in options:
        if name not in _WRITING or (function == "split" and name == "shard_size"):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    is_reached = "storage_options" in options and not isinstance(source, Archive)
    return opened_for(function, source, {"storage_options": options["storage_options"]} if is_reached else {})


def _written(
    function: str,
    archive: Archive,
    source: Any,
    path: Any,
    progress: Progress,
    threads: int,
    more: dict[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **asked: Any,
) -> Report:
    asked = request(function, inputs=_inputs(source), storage_options=pairs(storage_options), **asked)
    with watched(progress) as told:
        text = _tenfold.write(archive, path, asked, told, threads)
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
    if storage_options is not None and not isinstance(source, Archive):
        open_options["storage_options"] = storage_options
    archive = selected(opened_for("convert", source, open_options), include, exclude, dequantize)
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
        storage_options=storage_options,
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
    """Writes the same tensors under other names: by a mapping, a function, or regular expressions with replacements.

    What else is given says how it is written, as for `convert`: ``version``, ``zstd``, ``checksums``, ``shard_size``,
    ``sparse``, ``allow``, ``verify``, ``sync``, ``options``, ``storage_options``.

    >>> import os, tempfile, tenfold
    >>> path = os.path.join(tempfile.mkdtemp(), "renamed.safetensors")
    >>> report = tenfold.rename("fixtures/safetensors/valid/scalars.safetensors", path, rules=[("^", "model.")])
    >>> all(name.startswith("model.") for name in tenfold.open(path))
    True
    """
    before = _rewritten("rename", source, options)
    names = _new_names(before, rules)
    archive = _tenfold.rename(before, names)
    more = {"renamed": {old: names[old] for old in before if old in names and names[old] != old}}
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
    """Writes some of the tensors: those that are named, or those that patterns leave. What else is given says how, as for
    `rename`.

    >>> import os, tempfile, tenfold
    >>> source = "fixtures/safetensors/valid/scalars.safetensors"
    >>> first, *others = tenfold.open(source)
    >>> path = os.path.join(tempfile.mkdtemp(), "first.safetensors")
    >>> report = tenfold.extract(source, path, [first])
    >>> list(tenfold.open(path)) == [first]
    True
    """
    whole = _rewritten("extract", source, options)
    if tensors:
        for name in tensors:
            whole[name]
        wanted = set(tensors)
        archive = whole._take([place for place, name in enumerate(whole) if name in wanted])
    else:
        archive = select(whole, include, exclude)
    if not len(archive) and len(whole):
        raise ArgumentError(f"include and exclude leave none of {len(whole)} tensors")
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
    the ``"first"`` or the ``"last"`` counts. What else is given says how it is written, as for `rename`.

    >>> import os, tempfile, numpy, tenfold
    >>> folder = tempfile.mkdtemp()
    >>> parts = [os.path.join(folder, name) for name in ("a.npz", "b.npz")]
    >>> for path, name in zip(parts, "ab"):
    ...     report = tenfold.save(path, {name: numpy.zeros(3)})
    >>> both = os.path.join(folder, "both.safetensors")
    >>> report = tenfold.merge(parts, both)
    >>> list(tenfold.open(both))
    ['a', 'b']
    """
    if prefer not in (None, "first", "last"):
        raise ArgumentError(f"prefer is 'first' or 'last', not {prefer!r}")
    archives = [_rewritten("merge", source, options) for source in sources]
    archive, conflicts = _tenfold.merge(archives, prefer)
    titles = [title_of(source) for source in sources]
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
    file for each of the ``"layers"``. What else is given says how, as for `rename`.

    >>> import os, tempfile, tenfold
    >>> folder = os.path.join(tempfile.mkdtemp(), "parts")
    >>> report = tenfold.split("fixtures/safetensors/valid/scalars.safetensors", folder, by=2)
    >>> len(tenfold.open(folder)) == report.tensors
    True
    """
    archive = _rewritten("split", source, options)
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
        name=Path(title_of(source)).name.partition(".")[0] or "model",
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

    A number gets the width that the value had before; numbers of NumPy keep their own. What else is given says how it is
    written, as for `rename`.

    >>> import os, tempfile, numpy, tenfold
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> report = tenfold.save(path, {"w": numpy.zeros(3)}, metadata={"by": "me", "draft": "yes"})
    >>> report = tenfold.edit_metadata(path, set={"by": "us"}, unset=["draft"])
    >>> tenfold.open(path).metadata.to_dict()
    {'by': 'us'}
    """
    archive = _rewritten("edit_metadata", source, options)
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
        "edit_metadata",
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


__all__ = ["convert", "edit_metadata", "extract", "merge", "rename", "split"]
