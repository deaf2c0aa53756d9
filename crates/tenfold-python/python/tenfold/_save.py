"""Loading all of a file, and saving."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _frameworks, _tenfold
from ._errors import ArgumentError, SharedTensorWarning
from ._open import open as open_
from ._results import Report
from ._tenfold import Archive, Tensor

if TYPE_CHECKING:
    from types import TracebackType

    import torch
    from numpy.typing import NDArray

    from ._types import ArrayLike, Buffer, CastSpec, DTypeLike, Patterns, Progress, Source, Tensors


def select(
    archive: Archive,
    include: Patterns = None,
    exclude: Patterns = None,
    where: Callable[[Tensor], bool] | None = None,
) -> Archive:
    """The tensors that patterns and a function leave."""
    included = None if include is None else [include] if isinstance(include, str) else list(include)
    excluded = [] if exclude is None else [exclude] if isinstance(exclude, str) else list(exclude)
    places = archive._matching(included, excluded)
    if where is not None:
        tensors = list(archive.values())
        places = [place for place in places if where(tensors[place])]
    if len(places) == len(archive):
        return archive
    return archive._take(places)


@overload
def load(
    source: Source | Archive,
    *,
    framework: Literal["numpy", "np"] = "numpy",
    device: Any = None,
    include: Patterns = None,
    exclude: Patterns = None,
    copy: bool | None = None,
    dtype: DTypeLike | None = None,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> dict[str, NDArray[Any]]: ...
@overload
def load(
    source: Source | Archive,
    *,
    framework: Literal["torch", "pt", "pytorch"],
    device: Any = None,
    include: Patterns = None,
    exclude: Patterns = None,
    copy: bool | None = None,
    dtype: DTypeLike | None = None,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> dict[str, torch.Tensor]: ...
@overload
def load(
    source: Source | Archive,
    *,
    framework: str,
    device: Any = None,
    include: Patterns = None,
    exclude: Patterns = None,
    copy: bool | None = None,
    dtype: DTypeLike | None = None,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> dict[str, Any]: ...
def load(
    source: Source | Archive,
    *,
    framework: str = "numpy",
    device: Any = None,
    include: Patterns = None,
    exclude: Patterns = None,
    copy: bool | None = None,
    dtype: DTypeLike | None = None,
    progress: Progress = None,
    threads: int = 0,
    **open_options: Any,
) -> dict[str, Any]:
    """All tensors of a file, or those that patterns leave, by their names.

    Arrays lie over the mapped file where they can (`copy=None`); `copy=True` gives memory of their own.

    Parameters
    ----------
    framework : {"numpy", "torch", "jax", "tensorflow", "mlx"}
        Whose arrays.
    device : optional
        Where tensors of PyTorch or JAX go.
    include, exclude : str or list of str, optional
        Patterns of names, in which ``*`` crosses dots.
    dtype : optional
        The type that all numbers are cast to.
    progress : bool or callable, optional
        Shows a bar, or is called with the bytes that are done and those in all.

    Examples
    --------
    >>> import tenfold
    >>> tenfold.load("fixtures/safetensors/valid/scalars.safetensors", include="no such name")
    {}
    """
    archive = source if isinstance(source, Archive) else open_(source, threads=threads, **open_options)
    archive = select(archive, include, exclude)
    if dtype is not None:
        archive = _tenfold.cast(archive, [(dtype, None)])
    if framework in ("numpy", "np"):
        with watched(progress) as told:
            return _frameworks.archive_numpy(archive, copy, told, threads)
    if framework in ("torch", "pt", "pytorch"):
        return _frameworks.archive_torch(archive, device, copy)
    if framework in ("jax", "flax"):
        return {name: tensor.jax(device=device) for name, tensor in archive.items()}
    if framework in ("tensorflow", "tf"):
        return {name: tensor.tensorflow() for name, tensor in archive.items()}
    if framework == "mlx":
        return {name: tensor.mlx() for name, tensor in archive.items()}
    raise ArgumentError(f"framework is numpy, torch, jax, tensorflow or mlx, not {framework!r}")


@overload
def loads(data: Buffer, *, framework: Literal["numpy", "np"] = "numpy", **options: Any) -> dict[str, NDArray[Any]]: ...
@overload
def loads(data: Buffer, *, framework: Literal["torch", "pt", "pytorch"], **options: Any) -> dict[str, torch.Tensor]: ...
@overload
def loads(data: Buffer, *, framework: str, **options: Any) -> dict[str, Any]: ...
def loads(data: Buffer, *, framework: str = "numpy", **options: Any) -> dict[str, Any]:
    """`load` for bytes that are in memory.

    >>> import numpy, tenfold
    >>> data = tenfold.dumps({"w": numpy.arange(3)}, format="safetensors")
    >>> tenfold.loads(data)["w"]
    array([0, 1, 2])
    """
    return load(data, framework=framework, **options)


class watched:
    """Progress as a function: a bar, a line, or what was given."""

    def __init__(self, progress: Progress) -> None:
        self._given = progress
        self._bar: Any = None

    def __enter__(self) -> Callable[[int, int], object] | None:
        if self._given is None or self._given is False:
            return None
        if callable(self._given):
            return self._given
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return self._line if sys.stderr.isatty() else None
        self._bar = tqdm(total=0, unit="B", unit_scale=True, unit_divisor=1024)
        return self._update

    def _update(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.n = done
        self._bar.refresh()

    def _line(self, done: int, total: int) -> None:
        sys.stderr.write(f"\r{100 * done // max(1, total)} %")
        sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._given is True and sys.stderr.isatty():
            sys.stderr.write("\r     \r")


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
        return _given_numpy(_frameworks.module("numpy").asarray(value))
    if kind in ("jax", "jaxlib", "tensorflow", "mlx", "cupy") or hasattr(value, "__dlpack__"):
        return _given_other(name, value, kind)
    if isinstance(value, (bytes, bytearray, memoryview)) or hasattr(value, "__buffer__"):
        return _given_memory(memoryview(value))
    if isinstance(value, (bool, int, float, complex, list, tuple)) or hasattr(value, "__array__"):
        return _given_numpy(_frameworks.module("numpy").asarray(value))
    raise TypeError(f"{name!r}: arrays, tensors and buffers are saved, not {type(value).__qualname__}")


def _given_memory(view: memoryview) -> _Given:
    codes = {"?": "bool", "b": "i8", "B": "u8", "c": "u8", "h": "i16", "H": "u16", "i": "i32", "I": "u32"}
    codes |= {"q": "i64", "Q": "u64", "l": "i64", "L": "u64", "e": "f16", "f": "f32", "d": "f64"}
    code = codes.get(view.format.lstrip("@"))
    if code is None or not view.c_contiguous:
        return _given_numpy(_frameworks.module("numpy").asarray(view))
    given = _Given(code, view.shape or ())
    given.memory = view.cast("B") if view.nbytes else b""
    return given


def _given_numpy(array: Any) -> _Given:
    np = _frameworks.module("numpy")
    if array.dtype.kind in "OSUMm" or array.dtype.names:
        raise TypeError(f"arrays of {array.dtype} are no numbers and are not saved")
    if array.dtype == np.longdouble and array.dtype.itemsize > 8:
        raise TypeError("long double is saved by no format; convert it with .astype('float64')")
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
        return _given_numpy(np.from_dlpack(value))
    except (BufferError, TypeError, RuntimeError):
        pass
    if hasattr(value, "__array__"):
        return _given_numpy(np.asarray(value))
    raise TypeError(f"{name!r}: NumPy cannot read what {type(value).__qualname__} exports")


def _dense_bytes(name: str, lazy: Lazy) -> Any:
    """What a lazy tensor gives, as bytes of the type and shape that it said."""
    np = _frameworks.module("numpy")
    made = lazy.make()
    given = _given(name, made) if not isinstance(made, Tensor) else _given_numpy(made.numpy())
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

    if value.format == "csr":
        value = value.copy()
        value.sort_indices()
        layout, parts = "csr", [flat(value.indices, "<u8"), flat(value.indptr, "<u8")]
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
    command: str,
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
    asked: dict[str, Any] = {"command": command, "inputs": list(inputs), "to": to, "version": version}
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
    zstd: int | Mapping[str, int] | None = None,
    checksums: str | bool | None = None,
    shard_size: int | str | None = None,
    shared: str = "copy",
    allow: str = "rearranged",
    force: bool = True,
    sync: bool = True,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
    progress: Progress = None,
    threads: int = 0,
) -> Report:
    """Writes tensors to a file, in the format that its ending names. It appears whole or not at all.

    Inputs are arrays of NumPy, tensors of PyTorch, JAX, TensorFlow or MLX, sparse matrices of SciPy, anything with DLPack or
    a buffer, `Tensor`, `Lazy`, or a whole `Archive`. Memory is read without the interpreter's lock: nobody may change it
    meanwhile. Tensors of PyTorch and arrays that are not contiguous, or not in memory, are copied one at a time.

    Parameters
    ----------
    path : path or file object
        Replaced where it exists, unless `force=False`.
    metadata, tensor_metadata : mapping, optional
        What the file says about itself, and about its tensors by their names. Numbers of NumPy keep their width.
    cast, quantize : optional
        Another type for all tensors, or a mapping from patterns of names to types.
    zstd : int or mapping, optional
        The level to compress with.
    shard_size : int or str, optional
        Write several files of at most about so many bytes: ``"5GB"``.
    shared : {"copy", "drop", "error"}
        What becomes of tensors that share memory: each is written whole with a warning; the first is written and the metadata
        says which others are the same; or nothing is written.
    allow : {"rearranged", "changed", "dropped"}
        The worst that may happen to metadata.

    Examples
    --------
    >>> import numpy, tempfile, os, tenfold
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> tenfold.save(path, {"w": numpy.zeros((2, 3), "float32")}, metadata={"by": "me"})
    <Report model.safetensors: safetensors, 1 tensor, 120 B>
    """
    target = format or by_extension(path)
    archive, groups = _archive_of(tensors, metadata, tensor_metadata, shared, target)
    archive = retyped(archive, cast, quantize)
    asked = request(
        "save",
        to=format,
        version=version,
        zstd=zstd,
        checksums=checksums,
        shard_size=shard_size,
        allow=allow,
        options=options,
        force=force,
        sync=sync,
        dry_run=dry_run,
    )
    with watched(progress) as told:
        text = _tenfold.write(archive, path, asked, told, threads)
    return report(text, path, groups)


def report(text: str, path: Any, shared: tuple[tuple[str, ...], ...] = (), **more: Any) -> Report:
    """What Rust says that it wrote."""
    if hasattr(path, "write"):
        return Report._of(text, None, str(getattr(path, "name", "")), shared, **more)
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


def retyped(archive: Archive, cast: CastSpec, quantize: CastSpec, dequantize: bool = False) -> Archive:
    """Other types for tensors."""
    if dequantize:
        archive = _tenfold.dequantize(archive)
    if cast is not None:
        archive = _tenfold.cast(archive, rules(cast))
    if quantize is not None:
        archive = _tenfold.quantize(archive, rules(quantize))
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
    zstd: int | Mapping[str, int] | None = None,
    checksums: str | bool | None = None,
    shared: str = "copy",
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
    archive = retyped(archive, cast, quantize)
    asked = request("save", to=format, version=version, zstd=zstd, checksums=checksums, allow=allow, options=options)
    with watched(progress) as told:
        return _tenfold.dumps(archive, asked, told, threads)


def load_model(
    module: Any, source: Source | Archive, *, strict: bool = True, device: Any = None, assign: bool = False
) -> tuple[list[str], list[str]]:
    """Loads a file into a module of PyTorch, and gives the names that it misses and those that it does not know.

    Names that `save_model` left out because they are the same tensor are not missing.
    """
    archive = source if isinstance(source, Archive) else open_(source)
    state = _frameworks.archive_torch(archive, device, True if assign else None)
    found = module.load_state_dict(state, strict=False, assign=assign)
    known = module.state_dict()
    loaded = {known[name].data_ptr() for name in state if name in known and known[name].numel()}
    missing = [name for name in found.missing_keys if known[name].data_ptr() not in loaded or not known[name].numel()]
    unexpected = list(found.unexpected_keys)
    if strict and (missing or unexpected):
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"unexpected: {', '.join(unexpected)}"] if unexpected else []
        raise RuntimeError(f"{type(module).__name__} and the file do not have the same tensors; {'; '.join(parts)}")
    return missing, unexpected


def save_model(module: Any, path: Any, **options: Any) -> Report:
    """Saves the tensors of a module of PyTorch. Of several names for one tensor the first is written, and the metadata says
    which others there are."""
    options.setdefault("shared", "drop")
    return save(path, module.state_dict(), **options)


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
        self.path = Path(path)
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.tensor_metadata: dict[str, Mapping[str, Any]] = {}
        self.report: Report | None = None
        self._options = options
        self._streams: dict[str, Stream] = {}
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
        given = _given(name, value if not isinstance(value, Tensor) else value.numpy())
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
                shape = stream._finish()
                builder.file(name, stream.dtype, shape, stream.path, metadata=self.tensor_metadata.get(name))
            for key, said in self.metadata.items():
                builder.meta(key, said)
            self.report = save(self.path, builder.finish(), **self._options)
            return self.report
        finally:
            self._discard()

    def _discard(self) -> None:
        self._closed = True
        for stream in self._streams.values():
            stream._discard()
