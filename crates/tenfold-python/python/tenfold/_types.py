"""Names for what functions take."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, TypeAlias

from ._tenfold import DType

#: Anything with a buffer: bytes, bytearray, memoryview, mmap, an array.
Buffer: TypeAlias = Any
Source: TypeAlias = str | os.PathLike[str] | Buffer | IO[bytes]
DTypeLike: TypeAlias = DType | str | type | Any
Patterns: TypeAlias = str | Iterable[str] | None
#: One type for all tensors, or types by patterns of names, of which the last that matches counts.
CastSpec: TypeAlias = DTypeLike | Mapping[str, DTypeLike] | None
Rename: TypeAlias = Mapping[str, str] | Callable[[str], str | None] | Sequence[tuple[str, str]] | None
Progress: TypeAlias = bool | Callable[[int, int], object] | None
ArrayLike: TypeAlias = Any
Tensors: TypeAlias = Mapping[str, ArrayLike] | Iterable[tuple[str, ArrayLike]]
