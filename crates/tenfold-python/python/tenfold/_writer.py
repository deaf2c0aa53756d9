"""Files that are written tensor by tensor."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _tenfold
from ._errors import ArgumentError
from ._inputs import Lazy, _dense_bytes, _given, _is_scipy
from ._open import is_url
from ._results import Report
from ._save import save
from ._tenfold import Tensor

if TYPE_CHECKING:
    from types import TracebackType

    from ._types import ArrayLike, DTypeLike


class Stream:
    """A tensor of a `Writer` whose elements come piece by piece."""

    def __init__(self, dtype: Any, shape: tuple[int | None, ...], directory: str) -> None:
        self.dtype = _tenfold.dtype(dtype)
        if self.dtype.itemsize is None:
            raise ArgumentError(f"{self.dtype} has no elements of whole bytes to be streamed")
        if any(dim is None for dim in shape[1:]):
            raise ArgumentError("only the first dimension may be None")
        self._shape = shape
        self._file = tempfile.NamedTemporaryFile(dir=directory, prefix=".tenfold-", delete=False)
        self.path = self._file.name

    def write(self, chunk: ArrayLike) -> None:
        """Adds elements: an array of the stream's type, in row-major order."""
        given = _given("stream", chunk)
        if given.dtype != self.dtype and given.dtype != "u8":
            raise ArgumentError(f"{given.dtype} does not go into a stream of {self.dtype}")
        self._file.write(memoryview(_dense_bytes("stream", Lazy(given.dtype, given.shape, lambda: chunk))))

    def _finish(self) -> tuple[int, ...]:
        nbytes = self._file.tell()
        self._file.close()
        row = self.dtype.itemsize or 1
        for dim in self._shape[1:]:
            row *= dim or 0
        if self._shape and self._shape[0] is None:
            if row == 0 or nbytes % row:
                raise ArgumentError(f"the stream has {nbytes} bytes, which are no whole rows of {row}")
            return (nbytes // row, *(dim or 0 for dim in self._shape[1:]))
        return tuple(dim or 0 for dim in self._shape)

    def _discard(self) -> None:
        self._file.close()
        if os.path.exists(self.path):
            os.unlink(self.path)


class Writer:
    """Writes a file tensor by tensor, in memory that does not grow with it. Nothing is visible before the end, or after an
    exception.

    >>> import numpy, tempfile, os, tenfold
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> with tenfold.Writer(path) as writer:
    ...     writer["a"] = numpy.zeros(3, "float32")
    ...     stream = writer.stream("b", "int64", (None, 2))
    ...     for row in range(4):
    ...         stream.write(numpy.array([row, row]))
    >>> tenfold.load(path)["b"].shape
    (4, 2)
    """

    def __init__(self, path: Any, *, metadata: Mapping[str, Any] | None = None, **options: Any) -> None:
        if hasattr(path, "write") or is_url(path):
            raise ArgumentError("a Writer writes files of this machine; save() writes file objects and URLs")
        self.path = Path(path)
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.tensor_metadata: dict[str, Mapping[str, Any]] = {}
        self.report: Report | None = None
        self._options = options
        self._streams: dict[str, Stream | Tensor] = {}
        self._closed = False

    def stream(self, name: str, dtype: DTypeLike, shape: Sequence[int | None]) -> Stream:
        """A tensor whose elements are written piece by piece; the first dimension may be ``None``, which counts them."""
        self._check(name)
        stream = Stream(dtype, tuple(shape), os.fspath(self.path.parent))
        self._streams[name] = stream
        return stream

    def _check(self, name: str) -> None:
        if self._closed:
            raise ValueError("the writer is closed")
        if name in self._streams:
            raise ArgumentError(f"there are two tensors {name!r}")

    def __setitem__(self, name: str, value: ArrayLike) -> None:
        self._check(name)
        if isinstance(value, Tensor):
            # It is read at the end, when the archive that it is of may be closed.
            held = _tenfold.Builder()
            held.tensor(name, value)
            self._streams[name] = held.finish()[name]
            return
        if _is_scipy(value):
            raise TypeError(f"{name!r}: sparse matrices are written by save(), and not one by one")
        given = _given(name, value)
        stream = Stream.__new__(Stream)
        stream.dtype = given.dtype
        stream._shape = given.shape
        stream._file = tempfile.NamedTemporaryFile(dir=self.path.parent, prefix=".tenfold-", delete=False)
        stream.path = stream._file.name
        self._streams[name] = stream
        stream._file.write(memoryview(_dense_bytes(name, Lazy(given.dtype, given.shape, lambda: value))))

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._discard()

    def close(self) -> Report:
        """Writes the file."""
        if self._closed:
            raise ValueError("the writer is closed")
        self._closed = True
        try:
            builder = _tenfold.Builder()
            for name, stream in self._streams.items():
                said = self.tensor_metadata.get(name)
                if isinstance(stream, Tensor):
                    builder.tensor(name, stream, metadata=said)
                else:
                    builder.file(name, stream.dtype, stream._finish(), stream.path, metadata=said)
            for key, value in self.metadata.items():
                builder.meta(key, value)
            self.report = save(self.path, builder.finish(), **self._options)
            return self.report
        finally:
            self._discard()

    def _discard(self) -> None:
        self._closed = True
        for stream in self._streams.values():
            if isinstance(stream, Stream):
                stream._discard()
