"""Opening files."""

from __future__ import annotations

import io
import mmap as _mmap
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _tenfold
from ._errors import CorruptError, FormatWarning
from ._results import Format, Limits
from ._tenfold import Archive

if TYPE_CHECKING:
    from ._types import DTypeLike, Source


def open(
    source: Source | Sequence[Source],
    *,
    format: str | None = None,
    mmap: bool = True,
    strict: bool = False,
    checksums: bool = True,
    salvage: bool = False,
    assume_dtype: DTypeLike | None = None,
    opaque: bool = False,
    dequantize: bool = False,
    options: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    threads: int = 0,
    storage_options: Mapping[str, Any] | None = None,
) -> Archive:
    """Opens a file, or all files of a directory, as a mapping from names to tensors. No tensor is read yet.

    Parameters
    ----------
    source : path, URL, bytes or other buffer, file object, or several of them
        A path may be a directory, the index of a sharded model, or any of its shards. A buffer is kept and not copied. A URL
        (``s3://``, ``gs://``, ``az://``, ``https://``, ``hf://org/model/file``) is read by ranges, and nothing is downloaded.
    format : str, optional
        The format's id, instead of detecting it.
    mmap : bool
        Map files, so that arrays are views of them. Nobody may shorten or overwrite the files meanwhile: that would end the
        process with a signal, or change arrays. Replacing them by renaming, as every writer here does, is safe.
    strict : bool
        Make deviations that real readers tolerate errors; otherwise they are a `FormatWarning`.
    checksums : bool
        Compare the checksums of headers.
    salvage : bool
        Of a file that was cut off or damaged, open the tensors that are whole.
    assume_dtype : optional
        What elements are where a file has bytes without a type.
    opaque : bool
        Read objects of unknown classes in a pickle as records of what they hold. Nothing is ever run.
    dequantize : bool
        Give quantized tensors as the numbers that they stand for, as `dequantize` does. What is quantized together, as GPTQ's
        ``qweight``, ``scales`` and ``qzeros``, is one tensor of the plain name then.
    options : mapping, optional
        What only the file's format understands: ``tenfold formats NAME`` of the command lists it.
    limits : Limits, optional
        How much a file may ask for.
    threads : int
        How many threads make one large tensor; 0 is one for every core.
    storage_options : mapping, optional
        How a URL is reached, where the environment does not say it: ``endpoint``, ``region``, ``access_key_id``,
        ``secret_access_key``, ``anonymous``, ``account_name``, ``token``, ``allow_http``.

    Examples
    --------
    >>> import tenfold
    >>> with tenfold.open("fixtures/safetensors/valid/scalars.safetensors") as archive:
    ...     archive.format
    'safetensors'
    """
    asked: dict[str, Any] = {
        "format": format,
        "strict": strict,
        "checksums": checksums,
        "salvage": salvage,
        "assume_dtype": assume_dtype,
        "opaque": opaque,
        "options": list(options.items()) if options else None,
        "limits": limits,
        "threads": threads,
        "storage_options": pairs(storage_options),
    }
    asked = {key: value for key, value in asked.items() if value is not None}
    if isinstance(source, (list, tuple)):
        archives = [_open_one(one, mmap, asked) for one in source]
        archive = archives[0] if len(archives) == 1 else _tenfold.merge(archives, "first-metadata")[0]
        # What is quantized together may be in several of them.
        return _tenfold.dequantize(archive) if dequantize else archive
    if dequantize:
        asked["dequantize"] = True
    return _open_one(source, mmap, asked)


def _open_one(source: Any, mmap: bool, options: dict[str, Any]) -> Archive:
    archive = _opened(source, mmap, options)
    warned = [found for found in archive.findings if found.severity == "warning"]
    if warned:
        more = f" (and {len(warned) - 1} more)" if len(warned) > 1 else ""
        warnings.warn(f"{warned[0]}{more}", FormatWarning, stacklevel=3)
    return archive


def _opened(source: Any, mmap: bool, options: dict[str, Any]) -> Archive:
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if is_url(path):
            return _tenfold.open_file(path, False, options, ("url", path, options))
        origin = ("path", os.path.abspath(path), mmap, options, _stamp(path))
        return _tenfold.open_file(path, mmap, options, origin)
    found, name = in_memory(source, mmap)
    again = None if is_file_object(source) else ("memory", source, options)
    return _tenfold.open_source(found, name, options, again)


def is_file_object(source: Any) -> bool:
    # Mappings have both, and are memory.
    return hasattr(source, "read") and hasattr(source, "seek") and not isinstance(source, _mmap.mmap)


def in_memory(source: Any, mmap: bool = False) -> tuple[Any, str | None]:
    """What is read of bytes or a file object, which has a name where it is a file's: its memory, where it is in memory."""
    if not is_file_object(source):
        try:
            view = memoryview(source)
        except TypeError:
            kind = type(source).__qualname__
            raise TypeError(f"a path, bytes or a file object is read, not {kind}") from None
        except (BufferError, ValueError):
            # Types that buffers have no code for; their memory can be had all the same.
            return source, None
        if not view.contiguous:
            raise ValueError("its memory is not contiguous")
        return source, None
    if isinstance(source, io.TextIOBase):
        raise TypeError("the file is opened as text; open it with mode 'rb'")
    name = getattr(source, "name", None)
    name = os.path.basename(name) if isinstance(name, str) else None
    # Not what others make of it.
    if type(source) is io.BytesIO:
        return source.getbuffer(), name
    if mmap:
        try:
            return _mmap.mmap(source.fileno(), 0, access=_mmap.ACCESS_READ), name
        except (AttributeError, OSError, ValueError):
            # No file of the system, or an empty one.
            pass
    return source, name


def is_url(path: Any) -> bool:
    """Whether a path is a URL: it has a scheme, and no file is called so."""
    if not isinstance(path, str):
        return False
    scheme, found, _ = path.partition("://")
    return bool(found) and scheme.isalnum() and not os.path.exists(path)


def pairs(options: Mapping[str, Any] | None) -> list[tuple[str, str]] | None:
    """Options of a store as texts; those without a value are left out."""
    if options is None:
        return None
    said = ((key, str(value).lower() if isinstance(value, bool) else value) for key, value in options.items())
    return [(str(key), str(value)) for key, value in said if value is not None]


def _stamp(path: str) -> tuple[int, int] | None:
    """What tells a changed file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns)


def reopen(origin: tuple[Any, ...], names: list[str] | None) -> Archive:
    """Opens again what was pickled."""
    if origin[0] == "path":
        _, path, mmap, options, stamp = origin
        if _stamp(path) != stamp:
            raise CorruptError(
                f"{path}: the file has changed since it was pickled [file.changed]",
                kind="mismatch",
                rule="file.changed",
                path=path,
                message="the file has changed since it was pickled",
            )
        archive = _tenfold.open_file(path, mmap, options, origin)
    elif origin[0] == "url":
        _, url, options = origin
        archive = _tenfold.open_file(url, False, options, origin)
    else:
        _, data, options = origin
        archive = _tenfold.open_source(data, None, options, origin)
    if names is None:
        return archive
    wanted = set(names)
    return archive._take([place for place, name in enumerate(archive) if name in wanted])


def is_tensor_file(source: Source) -> str | None:
    """The id of the format that a file is of, or ``None``. Never raises because of what is in the file.

    >>> import tenfold
    >>> tenfold.is_tensor_file(b"GGUF")
    'gguf'
    >>> tenfold.is_tensor_file(b"something else") is None
    True
    """
    if isinstance(source, (str, os.PathLike)):
        return _tenfold.detect(os.fsdecode(source))
    found, _ = in_memory(source)
    if not is_file_object(source):
        return _tenfold.detect(found)
    where = source.tell()
    try:
        return _tenfold.detect(found)
    finally:
        source.seek(where)


def formats() -> tuple[Format, ...]:
    """The formats that are read, and the versions of them that are written.

    >>> import tenfold
    >>> [format.id for format in tenfold.formats() if "gguf" in format.extensions]
    ['gguf']
    """
    return tuple(
        Format(id, name, tuple(extensions), tuple(reads), tuple(writes))
        for id, name, extensions, reads, writes in _tenfold.formats()
    )
