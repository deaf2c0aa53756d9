"""Operations that look at files and archives. Each lets other threads run, and Ctrl-C stops it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _tenfold
from ._errors import Error
from ._load import select
from ._open import in_memory, opened
from ._progress import watched
from ._results import ArchiveStats, Diff, Digests, Inspection, Limits, Scan, Verification
from ._tenfold import Archive

if TYPE_CHECKING:
    from ._types import Patterns, Progress, Source


def opened_for(function: str, source: Source | Archive | Sequence[Source], options: Mapping[str, Any]) -> Archive:
    if isinstance(source, Archive):
        return opened(function, source, options)
    # What is only copied is read, not mapped: a file that shrinks meanwhile is an error then, never a signal.
    return opened(function, source, {"mmap": False, **options})


def title_of(source: Any) -> str:
    """What a source is called in documents."""
    if isinstance(source, Archive):
        return os.fspath(source.path) if source.path is not None else ""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return str(getattr(source, "name", ""))


def selected(archive: Archive, include: Patterns, exclude: Patterns, dequantize: bool) -> Archive:
    """The tensors that patterns leave, and quantized ones as numbers where that is asked for: what is quantized together is
    one tensor before any is left out."""
    if not dequantize:
        return select(archive, include, exclude)
    return _tenfold.dequantize(select(_tenfold.grouped(archive), include, exclude))


def inspect(source: Source | Archive, *, full: bool = False, **open_options: Any) -> Inspection:
    """What is in a file. `full` also has lists of more than 64 entries.

    >>> import tenfold
    >>> tenfold.inspect("fixtures/safetensors/valid/scalars.safetensors").format
    'safetensors'
    """
    archive = opened_for("inspect", source, open_options)
    return Inspection._of(_tenfold.inspect(archive, title_of(source), full), archive)


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

    title = title_of(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive = opened_for("verify", source, open_options)
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
        "message": error.message + (f"; {error.hint}" if error.hint else ""),
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
    archive = selected(opened_for("digest", source, open_options), None, None, dequantize)
    with watched(progress) as told:
        return Digests._of(_tenfold.digest(archive, title_of(source), told, threads))


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
    first, second = (selected(opened_for("diff", one, open_options), include, exclude, dequantize) for one in (a, b))
    with watched(progress) as told:
        text = _tenfold.diff(
            first,
            second,
            (title_of(a), title_of(b)),
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
        return Scan._of(_tenfold.scan(found, name, title_of(source), limits, told))


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
    archive = selected(opened_for("stats", source, open_options), include, exclude, dequantize)
    with watched(progress) as told:
        return ArchiveStats._of(_tenfold.stats(archive, title_of(source), bins, told, threads))


__all__ = ["diff", "digest", "inspect", "scan", "stats", "verify"]
