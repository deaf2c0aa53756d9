"""Opening files."""

from __future__ import annotations

import io
import mmap as _mmap
import os
import sys
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
    given = {
        "format": format,
        "mmap": mmap,
        "strict": strict,
        "checksums": checksums,
        "salvage": salvage,
        "assume_dtype": assume_dtype,
        "opaque": opaque,
        "dequantize": dequantize,
        "options": options,
        "limits": limits,
        "threads": threads,
        "storage_options": storage_options,
    }
    return open_for("open", source, given)


def opened(function: str, source: Any, given: Mapping[str, Any]) -> Archive:
    """What a function was given, opened unless it is: `given` is what it was told about opening."""
    if not isinstance(source, Archive):
        return open_for(function, source, given)
    if given:
        names = ", ".join(f"{name}=" for name in given)
        raise TypeError(f"the archive is open already, and {function} opens nothing: {names} is for tenfold.open")
    return source


def open_for(function: str, source: Any, given: Mapping[str, Any]) -> Archive:
    """`open` for a function, whose arguments are what messages advise."""
    asked = dict(given)
    unknown = [name for name in asked if name not in _KNOWN]
    if unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {unknown[0]!r}")
    mmap = asked.pop("mmap", True)
    dequantize = asked.pop("dequantize", False)
    asked["options"] = list((asked.get("options") or {}).items()) or None
    asked["storage_options"] = pairs(asked.get("storage_options"))
    asked = {key: value for key, value in asked.items() if value is not None}
    if isinstance(source, (list, tuple)):
        archives = [_open_one(function, one, mmap, asked) for one in source]
        archive = archives[0] if len(archives) == 1 else _tenfold.merge(archives, "first-metadata")[0]
        # What is quantized together may be in several of them.
        return _tenfold.dequantize(archive) if dequantize else archive
    if dequantize:
        asked["dequantize"] = True
    return _open_one(function, source, mmap, asked)


#: What `open` can be told.
_KNOWN = frozenset(open.__kwdefaults__ or ())


def _open_one(function: str, source: Any, mmap: bool, options: dict[str, Any]) -> Archive:
    archive = _opened(function, source, mmap, options)
    warned = [found for found in archive.findings if found.severity == "warning"]
    if warned:
        more = f" (and {len(warned) - 1} more)" if len(warned) > 1 else ""
        warnings.warn(f"{warned[0]}{more}", FormatWarning, stacklevel=_outside())
    return archive


def _outside() -> int:
    """How many frames above `_open_one` the user's is."""
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and (frame.f_globals.get("__package__") or "").partition(".")[0] == "tenfold":
        frame, level = frame.f_back, level + 1
    return level


class _Origin:
    """How an archive is opened again by another process."""

    __slots__ = ("kind", "mmap", "options", "source", "stamps")

    def __init__(self, kind: str, source: Any, mmap: bool, options: dict[str, Any]) -> None:
        self.kind = kind
        self.source = source
        self.mmap = mmap
        self.options = options
        #: What tells whether files were changed: their paths, lengths and times.
        self.stamps: list[tuple[str, tuple[int, int] | None]] = []

    def open(self) -> Archive:
        if self.kind == "memory":
            return _tenfold.open_source(self.source, None, self.options, self, "open")
        return _tenfold.open_file(self.source, self.mmap, self.options, self, "open")

    def __getstate__(self) -> dict[str, Any]:
        given = dict(self.options.get("storage_options") or ())
        secret = sorted(set(given) - _HARMLESS)
        if secret:
            raise TypeError(
                f"an archive that was opened with {', '.join(secret)} in storage_options is not pickled, because the pickle"
                " would have it: give it in the environment, or open the URL where it is read"
            )
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


#: What may be known of how a store is reached. Anything else may be a secret.
_HARMLESS = frozenset(
    {"account_name", "allow_http", "anonymous", "bucket", "endpoint", "hub_cache", "region", "skip_signature", "timeout"}
)


def _opened(function: str, source: Any, mmap: bool, options: dict[str, Any]) -> Archive:
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if is_url(path):
            return _tenfold.open_file(path, False, options, _Origin("url", path, False, options), function)
        origin = _Origin("path", os.path.abspath(path), mmap, options)
        # Before anything is read: what changes from now on is noticed.
        own = _stamp(origin.source)
        archive = _tenfold.open_file(path, mmap, options, origin, function)
        shards = (os.path.abspath(shard) for shard in archive._beside())
        origin.stamps = [(origin.source, own), *((shard, _stamp(shard)) for shard in shards if shard != origin.source)]
        return archive
    found, name = in_memory(source, mmap)
    again = None if is_file_object(source) else _Origin("memory", source, False, options)
    return _tenfold.open_source(found, name, options, again, function)


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


def reopen(origin: _Origin, names: list[str] | None) -> Archive:
    """Opens again what was pickled."""
    for path, stamp in origin.stamps:
        if _stamp(path) != stamp:
            raise CorruptError(
                f"{path}: the file has changed since it was opened [file.changed]",
                kind="mismatch",
                rule="file.changed",
                path=path,
                message="the file has changed since it was opened",
            )
    archive = origin.open()
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
