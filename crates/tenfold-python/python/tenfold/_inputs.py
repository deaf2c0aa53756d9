"""What is saved: arrays of other packages as memory, or as what makes it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _frameworks, _tenfold
from ._errors import ArgumentError, SharedTensorWarning
from ._tenfold import Archive, Tensor

if TYPE_CHECKING:
    from ._types import ArrayLike, DTypeLike, Tensors


class Lazy:
    """A tensor that is made when it is written, and let go then: more than memory holds can be saved.

    Some formats need it twice; `make` should give the same each time.

    >>> import numpy, tenfold
    >>> lazy = tenfold.Lazy("float32", (2, 3), lambda: numpy.ones((2, 3), "float32"))
    >>> len(tenfold.dumps({"w": lazy}, format="safetensors")) > 24
    True
    """

    __slots__ = ("dtype", "make", "shape")

    def __init__(self, dtype: DTypeLike, shape: Sequence[int], make: Callable[[], ArrayLike]) -> None:
        self.dtype = _tenfold.dtype(dtype)
        self.shape = tuple(int(dim) for dim in shape)
        self.make = make

    def __repr__(self) -> str:
        return f"<Lazy {self.dtype} {self.shape}>"


class _Given:
    """An input: its type and shape, and its memory or what makes it."""

    __slots__ = ("big_endian", "column_major", "dtype", "identity", "is_torch", "make", "memory", "shape")

    def __init__(self, dtype: Any, shape: Iterable[int]) -> None:
        self.dtype = _tenfold.dtype(dtype)
        self.shape = tuple(shape)
        self.memory: Any = None
        self.make: Callable[[], Any] | None = None
        self.big_endian = False
        self.column_major = False
        self.is_torch = False
        #: To notice what is shared: where its memory begins and ends, and what else tells views of it apart.
        self.identity: tuple[Any, ...] | None = None


def _given(name: str, value: Any) -> _Given:
    if isinstance(value, Lazy):
        given = _Given(value.dtype, value.shape)
        given.make = lambda: _dense_bytes(name, value)
        return given
    kind = type(value).__module__.partition(".")[0]
    if kind == "torch" or hasattr(value, "untyped_storage"):
        return _given_torch(name, value)
    if kind == "numpy" or (hasattr(value, "__array_interface__") and kind not in ("jax", "jaxlib")):
        return _given_numpy(name, value)
    if kind in ("jax", "jaxlib", "tensorflow", "mlx", "cupy") or hasattr(value, "__dlpack__"):
        return _given_other(name, value, kind)
    if isinstance(value, (bytes, bytearray, memoryview)) or hasattr(value, "__buffer__"):
        return _given_memory(name, memoryview(value))
    if isinstance(value, (bool, int, float, complex, list, tuple)) or hasattr(value, "__array__"):
        return _given_numpy(name, value)
    raise TypeError(f"{name!r}: arrays, tensors and buffers are saved, not {type(value).__qualname__}")


def _given_memory(name: str, view: memoryview) -> _Given:
    codes = {"?": "bool", "b": "i8", "B": "u8", "c": "u8", "h": "i16", "H": "u16", "i": "i32", "I": "u32"}
    codes |= {"q": "i64", "Q": "u64", "l": "i64", "L": "u64", "e": "f16", "f": "f32", "d": "f64"}
    code = codes.get(view.format.lstrip("@"))
    if code is None or not view.c_contiguous:
        return _given_numpy(name, view)
    given = _Given(code, view.shape or ())
    given.memory = view.cast("B") if view.nbytes else b""
    return given


def _given_numpy(name: str, value: Any) -> _Given:
    np = _frameworks.module("numpy")
    if np.ma.is_masked(value):
        raise TypeError(f"{name!r}: the array is masked, which no file keeps; save its .data and its .mask, or .filled(value)")
    array = np.asarray(value)
    if array.dtype.kind in "OSUMm" or array.dtype.names:
        raise TypeError(f"{name!r}: arrays of {array.dtype} are no numbers and are not saved")
    if array.dtype == np.longdouble and array.dtype.itemsize > 8:
        raise TypeError(f"{name!r}: long double is saved by no format; convert it with .astype('float64')")
    given = _Given(array.dtype.newbyteorder("="), array.shape)
    given.big_endian = array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big")
    subbyte = given.dtype.bits is not None and given.dtype.bits < 8
    if subbyte:
        given.make = lambda: _packed(array, given.dtype)
    elif not array.size:
        given.memory = b""
    elif array.flags.c_contiguous:
        given.memory = array.reshape(-1).view(np.uint8)
    elif array.flags.f_contiguous:
        given.memory = array.T.reshape(-1).view(np.uint8)
        given.column_major = True
    else:
        swapped = given.big_endian
        given.big_endian = False
        given.make = lambda: _contiguous(array, swapped)
    if given.memory is not None and array.size:
        start = array.__array_interface__["data"][0]
        given.identity = (start, start + array.nbytes, array.shape, array.strides, str(array.dtype))
    return given


def _contiguous(array: Any, swapped: bool) -> Any:
    np = _frameworks.module("numpy")
    dense = np.ascontiguousarray(array)
    if swapped:
        dense = dense.astype(dense.dtype.newbyteorder("<"))
    return dense.reshape(-1).view(np.uint8)


def _packed(array: Any, dtype: Any) -> Any:
    """Elements of a byte each as fewer bits, the first in the lowest."""
    np = _frameworks.module("numpy")
    bits = dtype.bits
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    planes = (codes[:, None] >> np.arange(bits, dtype=np.uint8)) & 1
    return np.packbits(planes.reshape(-1), bitorder="little")


def _given_torch(name: str, tensor: Any) -> _Given:
    torch = _frameworks.module("torch")
    if tensor.layout is not torch.strided:
        raise TypeError(f"{name!r}: {tensor.layout} of PyTorch is not saved; to_dense() makes it dense")
    if tensor.is_quantized:
        raise TypeError(f"{name!r}: quantized tensors of PyTorch are not saved; dequantize() first")
    tensor = tensor.detach()
    shape = tuple(tensor.shape)
    if tensor.dtype == getattr(torch, "float4_e2m1fn_x2", None):
        given = _Given("f4_e2m1", (*shape[:-1], shape[-1] * 2))
        tensor = tensor.view(torch.uint8)
    else:
        given = _Given(tensor.dtype, shape)
    given.is_torch = True
    is_plain = tensor.device.type == "cpu" and not tensor.is_conj() and not tensor.is_neg()
    if is_plain and tensor.numel():
        start = tensor.data_ptr()
        last = sum((dim - 1) * step for dim, step in zip(tensor.shape, tensor.stride(), strict=True))
        end = start + (last + 1) * tensor.element_size()
        given.identity = (start, end, shape, tensor.stride(), str(tensor.dtype))

    def flat(dense: Any) -> Any:
        return dense.reshape(-1).view(torch.uint8).numpy() if dense.numel() else b""

    if not is_plain:
        given.make = lambda: flat(tensor.cpu().resolve_conj().resolve_neg().contiguous())
    elif tensor.is_contiguous():
        given.memory = flat(tensor)
    elif tensor.ndim > 1 and tensor.permute(*reversed(range(tensor.ndim))).is_contiguous() and shape == given.shape:
        given.memory = flat(tensor.permute(*reversed(range(tensor.ndim))))
        given.column_major = True
    else:
        given.make = lambda: flat(tensor.contiguous())
    return given


def _given_other(name: str, value: Any, kind: str) -> _Given:
    np = _frameworks.module("numpy")
    if kind in ("jax", "jaxlib", "tensorflow"):
        dtype = getattr(value.dtype, "as_numpy_dtype", value.dtype)
        given = _Given(np.dtype(dtype), tuple(value.shape))
        given.make = lambda: _dense_bytes(name, Lazy(given.dtype, given.shape, lambda: np.asarray(value)))
        return given
    if kind == "mlx":
        mx = _frameworks.module("mlx.core", "mlx")
        text = str(value.dtype).rpartition(".")[2]
        given = _Given(text, tuple(value.shape))
        array = np.asarray(value.view(mx.uint16)) if text == "bfloat16" else np.asarray(value)
        given.memory = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return given
    try:
        return _given_numpy(name, np.from_dlpack(value))
    except (BufferError, TypeError, RuntimeError):
        pass
    if hasattr(value, "__array__"):
        return _given_numpy(name, np.asarray(value))
    raise TypeError(f"{name!r}: NumPy cannot read what {type(value).__qualname__} exports")


def _dense_bytes(name: str, lazy: Lazy) -> Any:
    """What a lazy tensor gives, as bytes of the type and shape that it said."""
    np = _frameworks.module("numpy")
    made = lazy.make()
    given = _given(name, made) if not isinstance(made, Tensor) else _given_numpy(name, made.numpy())
    if given.dtype != lazy.dtype or given.shape != lazy.shape:
        raise ArgumentError(
            f"tensor {name!r}: {given.dtype} {given.shape} was made, {lazy.dtype} {lazy.shape} was promised",
            kind="argument",
            tensor=name,
        )
    if given.make is not None:
        return given.make()
    if given.column_major or given.big_endian:
        array = np.asarray(made if not isinstance(made, Tensor) else made.numpy())
        return _contiguous(array, given.big_endian)
    return given.memory


def _is_scipy(value: Any) -> bool:
    return type(value).__module__.startswith("scipy.sparse")


def _add_scipy(builder: Any, name: str, value: Any, metadata: Any) -> None:
    np = _frameworks.module("numpy")

    def flat(array: Any, dtype: Any) -> Any:
        return np.ascontiguousarray(array, dtype=dtype).reshape(-1).view(np.uint8)

    if value.format in ("csc", "csr"):
        value = value.copy()
        value.sort_indices()
        layout, parts = value.format, [flat(value.indices, "<u8"), flat(value.indptr, "<u8")]
    else:
        value = value.tocoo()
        coords = value.coords if hasattr(value, "coords") else (value.row, value.col)
        layout, parts = "coo", [np.concatenate([flat(axis, "<u8") for axis in coords])]
    values = np.ascontiguousarray(value.data)
    dtype = values.dtype.newbyteorder("<") if values.dtype.itemsize > 1 else values.dtype
    parts.insert(0, values.astype(dtype).view(np.uint8))
    builder.sparse(name, _tenfold.dtype(values.dtype), value.shape, layout, parts, metadata=metadata)


def _pairs_of(tensors: Tensors) -> Iterator[tuple[str, Any]]:
    pairs: Iterable[Any] = tensors.items() if isinstance(tensors, Mapping) else tensors
    for pair in pairs:
        name, value = pair
        if not isinstance(name, str):
            raise TypeError(f"names of tensors are text, not {type(name).__qualname__}: {name!r}")
        yield name, value


def build(
    tensors: Tensors,
    metadata: Mapping[str, Any] | None = None,
    tensor_metadata: Mapping[str, Mapping[str, Any]] | None = None,
    shared: str = "copy",
    format: str | None = None,
) -> tuple[Archive, tuple[tuple[str, ...], ...]]:
    """Inputs as an archive, and the groups of names that share memory."""
    if shared not in ("copy", "drop", "error"):
        raise ArgumentError(f"shared is 'copy', 'drop' or 'error', not {shared!r}")
    builder = _tenfold.Builder()
    said = dict(tensor_metadata or {})
    first: dict[tuple[Any, ...], str] = {}
    spans: list[tuple[int, int, str]] = []
    any_torch = False
    dropped: dict[str, str] = {}
    for name, value in _pairs_of(tensors):
        about = said.get(name)
        if isinstance(value, Tensor):
            builder.tensor(name, value, metadata=about)
            continue
        if _is_scipy(value):
            _add_scipy(builder, name, value, about)
            continue
        given = _given(name, value)
        any_torch |= given.is_torch
        if given.identity is not None:
            spans.append((*given.identity[:2], name))
            # Only what is the same view can be found again under the other name.
            kept = first.setdefault(given.identity, name)
            if kept != name and shared == "drop":
                dropped[name] = kept
                continue
        if given.make is not None:
            builder.stream(name, given.dtype, given.shape, given.make, metadata=about)
        else:
            builder.push(
                name,
                given.dtype,
                given.shape,
                given.memory,
                big_endian=given.big_endian,
                column_major=given.column_major,
                metadata=about,
            )
    found = _overlapping(spans)
    if found and shared == "error":
        raise ArgumentError(f"tensors share memory: {_said_groups(found)}; shared='copy' or 'drop' writes them")
    if found and shared == "copy":
        warnings.warn(
            f"tensors share memory and are written as copies: {_said_groups(found)}", SharedTensorWarning, stacklevel=4
        )
    file = dict(metadata or {})
    if any_torch and format == "safetensors":
        file.setdefault("format", "pt")
    for name, kept in dropped.items():
        file.setdefault(name, kept)
    for key, value in file.items():
        builder.meta(key, value)
    return builder.finish(), found


def _overlapping(spans: list[tuple[int, int, str]]) -> tuple[tuple[str, ...], ...]:
    """The names whose memory overlaps, in groups."""
    groups: list[list[str]] = []
    end = -1
    for start, stop, name in sorted(spans, key=lambda span: span[:2]):
        if start < end:
            groups[-1].append(name)
        else:
            groups.append([name])
        end = max(end, stop)
    return tuple(tuple(names) for names in groups if len(names) > 1)


def _said_groups(groups: tuple[tuple[str, ...], ...]) -> str:
    shown = ", ".join("{" + ", ".join(repr(name) for name in group) + "}" for group in groups[:4])
    return shown + (" and others" if len(groups) > 4 else "")
