"""The interface of the package `safetensors`, for files of every format.

>>> from tenfold.compat.safetensors import safe_open
>>> with safe_open("fixtures/safetensors/valid/scalars.safetensors", framework="np") as file:
...     names = file.keys()
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ... import _tenfold
from ..._errors import Error as SafetensorError
from ..._load import FRAMEWORKS
from ..._open import open_for
from ..._results import Report
from ..._save import dumps as _dumps
from ..._save import save as _save
from ..._tenfold import Archive, Tensor, __version__

__all__ = [
    "SafetensorError",
    "TensorSpec",
    "__version__",
    "deserialize",
    "safe_open",
    "serialize",
    "serialize_file",
]

#: What safetensors calls the types of elements.
_NAMES = {
    "bool": "BOOL",
    "u8": "U8",
    "i8": "I8",
    "u16": "U16",
    "i16": "I16",
    "u32": "U32",
    "i32": "I32",
    "u64": "U64",
    "i64": "I64",
    "f16": "F16",
    "bf16": "BF16",
    "f32": "F32",
    "f64": "F64",
    "c64": "C64",
    "f8_e4m3": "F8_E4M3",
    "f8_e5m2": "F8_E5M2",
    "f8_e8m0": "F8_E8M0",
    "f8_e4m3fnuz": "F8_E4M3FNUZ",
    "f8_e5m2fnuz": "F8_E5M2FNUZ",
    "f4_e2m1": "F4",
    "f6_e2m3": "F6_E2M3",
    "f6_e3m2": "F6_E3M2",
}


def _code(tensor: Tensor) -> str:
    return _NAMES.get(tensor.dtype.code, tensor.dtype.name)


def _array(tensor: Tensor, framework: str, device: Any) -> Any:
    if framework == "numpy":
        return tensor.numpy(copy=True)
    if framework == "torch":
        return tensor.torch(device=device)
    if framework == "jax":
        return tensor.jax()
    if framework == "tensorflow":
        return tensor.tensorflow()
    return tensor.mlx()


class safe_open:
    """A file of tensors; `framework` says whose arrays it gives."""

    def __init__(
        self,
        filename: str | os.PathLike[str],
        framework: str,
        device: Any = "cpu",
        *,
        backend: str = "mmap",
    ) -> None:
        if backend not in ("mmap", "pread"):
            raise SafetensorError(f"backend is 'mmap' or 'pread', not {backend!r}")
        if not os.path.exists(filename):
            raise FileNotFoundError(f"No such file or directory: {os.fspath(filename)}")
        self._begin(open_for("", filename, {"mmap": backend == "mmap"}), framework, device)

    def _begin(self, archive: Archive, framework: str, device: Any) -> None:
        known = FRAMEWORKS.get(framework)
        if known is None:
            raise SafetensorError(f"framework {framework} is invalid")
        self._archive = archive
        self._framework = known
        self._device = device

    def _opened(self) -> Archive:
        if self._archive.closed:
            raise SafetensorError("File is closed")
        return self._archive

    def keys(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._opened())

    def offset_keys(self) -> list[str]:
        """The names in the order of the data."""
        archive = self._opened()
        return sorted(archive, key=lambda name: archive[name].offset or 0)

    def metadata(self) -> dict[str, str] | None:
        """What the file says about itself."""
        found = self._opened().metadata.to_dict()
        return found or None

    def get_tensor(self, name: str) -> Any:
        """One tensor."""
        return _array(self._found(name), self._framework, self._device)

    def get_tensors(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """All tensors, or those of these names."""
        return {name: self.get_tensor(name) for name in (self.keys() if names is None else names)}

    def get_slice(self, name: str) -> PySafeSlice:
        """One tensor, of which only what is asked for is read."""
        return PySafeSlice(self._found(name), self._framework, self._device)

    def _found(self, name: str) -> Tensor:
        archive = self._opened()
        if name not in archive:
            raise SafetensorError(f"File does not contain tensor {name}")
        return archive[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._opened())

    def __contains__(self, name: object) -> bool:
        return name in self._opened()

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()


class _safe_open_handle(safe_open):
    """The same for a file object."""

    def __init__(self, handle: Any, framework: str, device: Any = "cpu") -> None:
        # A file that was opened as text has its bytes below.
        self._begin(open_for("", getattr(handle, "buffer", handle), {}), framework, device)


class PySafeSlice:
    """A tensor of which slices are read."""

    def __init__(self, tensor: Tensor, framework: str, device: Any) -> None:
        self._tensor = tensor
        self._framework = framework
        self._device = device

    def get_shape(self) -> list[int]:
        """The dimensions."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """The type as safetensors calls it."""
        return _code(self._tensor)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, list):
            if key:
                raise SafetensorError("Non empty lists are not implemented")
            key = slice(0, 0)
        self._check(key if isinstance(key, tuple) else (key,))
        found = self._tensor[key]
        if self._framework == "numpy":
            return found
        if self._framework == "torch":
            from ..._torch import of_numpy

            return of_numpy(found, self._device)
        from ... import _frameworks

        if self._framework == "jax":
            return _frameworks.jax_of(found)
        if self._framework == "tensorflow":
            return _frameworks.tensorflow_of(found)
        return _frameworks.mlx_of(found)

    def _check(self, key: tuple[Any, ...]) -> None:
        """What is outside is an error here, where NumPy would cut it off."""
        shape = self.get_shape()
        shown = ", ".join(_shown(part) for part in key)
        if Ellipsis in key:
            return
        for axis, part in enumerate(key):
            if axis >= len(shape):
                raise SafetensorError(f"Error during slicing [{shown}] with shape {shape}: too many indices")
            size = shape[axis]
            if isinstance(part, slice):
                outside = part.stop - 1 if part.stop is not None and part.stop > size else None
            else:
                if part < -size:
                    raise SafetensorError(f"Invalid index {part} for dimension {axis} of size {size}")
                outside = part if part >= size else None
            if outside is not None:
                raise SafetensorError(
                    f"Error during slicing [{shown}] with shape {shape}: "
                    f"index {outside} out of bounds for tensor dimension #{axis} of size {size}"
                )


def _shown(part: Any) -> str:
    if not isinstance(part, slice):
        return str(part)
    return f"{'' if part.start is None else part.start}:{'' if part.stop is None else part.stop}"


class TensorSpec:
    """Memory that is written: its type, shape, address and length in bytes."""

    __slots__ = ("data_len", "data_ptr", "dtype", "shape")

    def __init__(self, dtype: str, shape: Sequence[int], data_ptr: int, data_len: int) -> None:
        try:
            self.dtype = _tenfold.dtype(dtype)
        except (ValueError, TypeError) as error:
            raise SafetensorError(str(error)) from None
        self.shape = tuple(shape)
        self.data_ptr = data_ptr
        self.data_len = data_len


def _archive(tensors: Mapping[str, TensorSpec], metadata: Mapping[str, str] | None) -> Archive:
    builder = _tenfold.Builder()
    for name, spec in tensors.items():
        if not isinstance(spec, TensorSpec):
            raise TypeError(f"{name!r}: a TensorSpec is expected, not {type(spec).__qualname__}")
        memory: Any = (ctypes.c_ubyte * spec.data_len).from_address(spec.data_ptr) if spec.data_len else b""
        builder.push(name, spec.dtype, spec.shape, memory)
    for key, value in (metadata or {}).items():
        builder.meta(key, value)
    return builder.finish()


def serialize(data: Mapping[str, TensorSpec], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with these tensors."""
    return _dumps(_archive(data, metadata), format="safetensors")


def serialize_file(
    data: Mapping[str, TensorSpec], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> Report:
    """Writes a safetensors file with these tensors."""
    return _save(filename, _archive(data, metadata), format="safetensors")


def deserialize(data: Any) -> list[tuple[str, dict[str, Any]]]:
    """The tensors of a file in memory: shape, type and bytes of each."""
    archive = open_for("", data, {})
    return [
        (name, {"shape": list(tensor.shape), "dtype": _code(tensor), "data": bytearray(tensor.tobytes())})
        for name, tensor in archive.items()
    ]
