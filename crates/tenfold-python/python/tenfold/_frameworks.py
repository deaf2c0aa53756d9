"""Arrays of other packages. Each is imported when it is first needed; PyTorch is in `_torch`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import _tenfold
from ._errors import UnsupportedError
from ._progress import parts

if TYPE_CHECKING:
    from ._progress import Told
    from ._results import Stats
    from ._tenfold import Archive, DType, Tensor


@cache
def module(name: str, extra: str | None = None) -> ModuleType:
    """A package that may be missing."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != name.partition(".")[0]:
            raise
        raise ImportError(f"{name} is needed for this; pip install 'tenfold[{extra or name}]'", name=name) from None


# NumPy


@cache
def numpy_dtype(name: str, big_endian: bool) -> Any:
    """NumPy's type of this name."""
    np = module("numpy")
    if name == "uint1":
        # There is none: a byte for each.
        return np.dtype(np.uint8)
    plain = getattr(np, name, None) if name not in ("float128", "int128", "uint128") else None
    if name == "bool":
        plain = np.bool_
    if plain is not None:
        return np.dtype(plain).newbyteorder(">" if big_endian else "<")
    found = getattr(module("ml_dtypes", "numpy"), name, None)
    if found is None:
        raise UnsupportedError(
            f"NumPy has no {name}; `numpy(dtype=...)` casts, `data` and `tobytes()` give the bytes",
            kind="unsupported",
            rule="file.dtype",
        )
    dtype = np.dtype(found)
    if big_endian and dtype.itemsize > 1:
        raise UnsupportedError(f"NumPy has no big-endian {name}", kind="unsupported", rule="file.dtype")
    return dtype


def spelling(object: Any) -> str:
    """How an object spells a type, as a text that the library knows."""
    if object is float:
        return "float64"
    if object is int:
        return "int64"
    if object is bool:
        return "bool"
    if object is complex:
        return "complex128"
    kind = type(object)
    if kind.__module__.partition(".")[0] == "torch":
        return str(object)
    # Types of TensorFlow, and of arrays.
    for attribute in ("as_numpy_dtype", "__numpy_dtype__"):
        found = getattr(object, attribute, None)
        if found is not None and found is not object:
            object = found
            break
    np = sys.modules.get("numpy")
    if np is not None and (isinstance(object, (np.dtype, type)) or hasattr(object, "dtype")):
        try:
            name: str = np.dtype(object).name
        except TypeError:
            pass
        else:
            return f"numpy.{name}"
    raise TypeError(f"{object!r} is no type of elements")


def is_subbyte(dtype: DType) -> bool:
    return dtype.bits is not None and dtype.bits < 8


def _array_shape(tensor: Tensor, dtype: DType, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an array: elements of several numbers that NumPy does not know have a dimension more."""
    if dtype.kind in ("complex", "lanes") and dtype.bits is not None:
        itemsize = dtype.numpy.itemsize * 8
        if dtype.bits != itemsize:
            return (*shape, dtype.bits // itemsize)
    return shape


def _made(tensor: Tensor, key: Any, shape: tuple[int, ...]) -> Any:
    """An array of its own with all elements, or those of a slice."""
    np = module("numpy")
    dtype = tensor._numbers
    if dtype.kind == "opaque":
        # The library says what is the matter with it.
        tensor.tobytes()
    numpy = _numpy_of(tensor)
    shape = _array_shape(tensor, dtype, shape)
    if is_subbyte(dtype):
        flat = np.frombuffer(tensor._unpacked(key), np.uint8).copy()
        return flat.view(numpy).reshape(shape)
    memory = np.empty(tensor._room(key), np.uint8)
    tensor.read_into(memory, key)
    return memory.view(numpy).reshape(shape)


def _numpy_of(tensor: Tensor) -> Any:
    """NumPy's type of a tensor's numbers."""
    try:
        return tensor._numbers.numpy
    except UnsupportedError as error:
        raise about(tensor, error) from None


def about(tensor: Tensor, error: UnsupportedError) -> UnsupportedError:
    """What is wrong with a type as what is wrong with a tensor of it."""
    return UnsupportedError(f"{tensor.name!r}: {error}", kind="unsupported", rule=error.rule, tensor=tensor.name)


def to_numpy(tensor: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """`Tensor.numpy`, where nothing can be shared or something else is wanted."""
    np = module("numpy")
    if dtype is not None:
        wanted = _tenfold.dtype(dtype)
        if wanted != tensor._numbers:
            if copy is False:
                raise ValueError(f"{tensor.name!r}: a cast to {wanted} needs a copy")
            return to_numpy(tensor._as(wanted), None, True)
        if copy is not True:
            return tensor.numpy(copy=copy)
    if copy is False and tensor.size:
        raise ValueError(f"{tensor.name!r} cannot be viewed as it is stored ({why(tensor)}); copy=None or True copies")
    if copy is True and tensor.is_zero_copy:
        view = tensor.numpy()
        return np.array(view, dtype=view.dtype.newbyteorder("="), order="C")
    return _made(tensor, None, tensor.shape)


def why(tensor: Tensor) -> str:
    if tensor.codec:
        return f"compressed with {tensor.codec}"
    if tensor.dtype.kind == "quantized":
        return "quantized"
    if tensor.dtype.kind == "bool":
        return "truth values may be any byte"
    if is_subbyte(tensor.dtype):
        return "elements of less than a byte"
    if tensor.layout not in ("row-major", "column-major"):
        return tensor.layout
    return "the file is not mapped"


def sliced(tensor: Tensor, key: Any) -> Any:
    """`Tensor.__getitem__`."""
    if tensor.is_zero_copy:
        extra = _array_shape(tensor, tensor.dtype, ()) if tensor.dtype.kind in ("complex", "lanes") else ()
        array = tensor.numpy()
        if not extra:
            return array[key]
    parts = key if isinstance(key, tuple) else (key,)
    shape = tensor._sliced_shape(key)
    array = _made(tensor, tuple(part for part in parts if part is not None), tuple(shape))
    if any(part is None for part in parts):
        array = array[_new_axes(parts, len(tensor.shape))]
    if array.ndim == 0 and Ellipsis not in parts:
        return array[()]
    return array


def _new_axes(parts: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    """The index that puts dimensions of 1 into what was sliced already."""
    index: list[Any] = []
    used = sum(part is not None and part is not Ellipsis for part in parts)
    for part in parts:
        if part is None:
            index.append(None)
        elif part is Ellipsis:
            index.extend([slice(None)] * (ndim - used))
        elif isinstance(part, slice):
            index.append(slice(None))
    return (*index, Ellipsis)


def chunks(tensor: Tensor, nbytes: int) -> Iterator[Any]:
    """`Tensor.chunks`: slices along the first dimensions, flat."""
    itemsize = max(1, (tensor._numbers.bits or 8) // 8)
    wanted = max(1, nbytes // itemsize)
    shape = tensor.shape
    if tensor.size <= wanted or not shape:
        if tensor.size or not shape:
            yield tensor[...].reshape(-1)
        return

    def pieces(prefix: tuple[Any, ...], axis: int) -> Iterator[Any]:
        row = math.prod(shape[axis + 1 :])
        if row > wanted and axis + 1 < len(shape):
            for place in range(shape[axis]):
                yield from pieces((*prefix, place), axis + 1)
            return
        step = max(1, wanted // max(1, row))
        for start in range(0, shape[axis], step):
            yield tensor[(*prefix, slice(start, start + step), ...)].reshape(-1)

    yield from pieces((), 0)


def rows(tensor: Tensor) -> Iterator[Any]:
    """The parts along the first dimension."""
    if not tensor.shape:
        raise TypeError("iteration over a tensor without dimensions")
    return (tensor[place] for place in range(tensor.shape[0]))


def writable_bytes(object: Any) -> Any:
    """The memory of an object as bytes: buffers have no code for types of ml_dtypes, and none for tensors."""
    kind = type(object).__module__.partition(".")[0]
    if kind == "torch":
        object = object.detach()
        torch = module("torch")
        if object.device.type != "cpu" or not object.is_contiguous():
            raise ValueError("the memory is not contiguous on the CPU")
        return object.reshape(-1).view(torch.uint8).numpy() if object.numel() else bytearray()
    if kind == "numpy" and hasattr(object, "dtype") and not object.dtype.isbuiltin == 1:
        np = module("numpy")
        if not object.flags.c_contiguous:
            raise ValueError("the memory is not C-contiguous")
        return object.reshape(-1).view(np.uint8)
    return object


def blocks(tensor: Tensor) -> Any:
    """`Tensor.blocks`."""
    np = module("numpy")
    block = tensor.dtype.block
    if block is None:
        raise TypeError(f"{tensor.name!r} is {tensor.dtype}, which has no blocks")
    return np.frombuffer(tensor._canonical(), np.uint8).reshape(-1, block[1])


def to_scipy(tensor: Tensor) -> Any:
    """`Tensor.scipy`."""
    np = module("numpy")
    sparse = module("scipy.sparse", "scipy")
    if tensor.layout not in ("coo", "csc", "csr"):
        raise TypeError(f"{tensor.name!r} is {tensor.layout}, not coo, csc or csr")
    found: dict[str, Any] = {}
    for place, part in enumerate(tensor.parts):
        dtype = part.dtype.numpy
        if part.byteorder == "big":
            dtype = dtype.newbyteorder(">")
        # SciPy computes with the byte order of this machine alone.
        found[part.role] = native(np.frombuffer(tensor._part(place), dtype))
    if tensor.layout in ("csc", "csr"):
        indices, indptr = (_signed(found[role]) for role in ("indices", "indptr"))
        array = sparse.csc_array if tensor.layout == "csc" else sparse.csr_array
        return array((found["values"], indices, indptr), shape=tensor.shape)
    coords = _signed(found["coords"]).reshape(len(tensor.shape), -1)
    if len(tensor.shape) == 2:
        return sparse.coo_array((found["values"], (coords[0], coords[1])), shape=tensor.shape)
    return sparse.coo_array((found["values"], tuple(coords)), shape=tensor.shape)


def _signed(indices: Any) -> Any:
    """SciPy has signed indices; those of a shape in memory fit."""
    return indices.view(indices.dtype.str.replace("u", "i")) if indices.dtype.kind == "u" else indices


def stats(tensor: Tensor, bins: int | None) -> Stats:
    """`Tensor.stats`."""
    from ._results import ArchiveStats

    archive = tensor.archive
    place = next(at for at, name in enumerate(archive) if name == tensor.name)
    alone = archive._take([place])
    found = ArchiveStats._of(_tenfold.stats(alone, "", bins, None, 0))
    if found.errors:
        raise UnsupportedError(found.errors[tensor.name], kind="unsupported", tensor=tensor.name)
    return found[tensor.name]


def archive_numpy(archive: Archive, copy: bool | None, progress: Told = None, threads: int = 0) -> dict[str, Any]:
    """All tensors as arrays."""
    if copy is not True:

        def other(tensor: Tensor) -> Any:
            return to_numpy(tensor, None, copy)

        return archive._arrays(other)
    np = module("numpy")
    arrays: dict[str, Any] = dict.fromkeys(archive)
    whole: list[tuple[int, Tensor]] = []
    for place, (name, tensor) in enumerate(archive.items()):
        if is_subbyte(tensor._numbers) or tensor._numbers.kind == "opaque":
            arrays[name] = _made(tensor, None, tensor.shape)
        else:
            # What NumPy does not have shows before anything is read.
            _numpy_of(tensor)
            whole.append((place, tensor))
    for tensor, memory in read_blocks(archive, whole, lambda nbytes: np.empty(nbytes, np.uint8), progress, threads):
        shape = _array_shape(tensor, tensor._numbers, tensor.shape)
        arrays[tensor.name] = memory.view(_numpy_of(tensor)).reshape(shape)
    return arrays


#: Each array keeps the whole block that it lies in.
_BLOCK = 256 << 20
_ALIGN = 64


def read_blocks(
    archive: Archive,
    tensors: Sequence[tuple[int, Tensor]],
    allocate: Callable[[int], Any],
    progress: Told = None,
    threads: int = 0,
    most: int = _BLOCK,
) -> Iterator[tuple[Tensor, Any]]:
    """Reads tensors, with their places in the archive, into blocks of memory: gives each with its piece of one."""
    blocks = list(_in_blocks(tensors, most))
    told = parts(progress, sum(nbytes for _, members in blocks for _, _, _, nbytes in members))
    for block, members in blocks:
        memory = allocate(block)
        places = [place for _, place, _, _ in members]
        pieces = [(offset, nbytes) for _, _, offset, nbytes in members]
        archive._read_many(places, pieces, writable_bytes(memory), next(told), threads)
        for tensor, _, offset, nbytes in members:
            yield tensor, memory[offset : offset + nbytes]


def _in_blocks(tensors: Iterable[tuple[int, Tensor]], most: int) -> Iterator[tuple[int, list[tuple[Tensor, int, int, int]]]]:
    """Tensors that share memory: the bytes of it, and of each tensor its place in the archive, its offset and length."""
    members: list[tuple[Tensor, int, int, int]] = []
    end = 0
    for place, tensor in tensors:
        nbytes = tensor._room(None)
        if members and end + nbytes > most:
            yield end, members
            members, end = [], 0
        members.append((tensor, place, end, nbytes))
        end = -(-(end + nbytes) // _ALIGN) * _ALIGN
    if members:
        yield end, members


# Others


def native(array: Any) -> Any:
    """An array in the byte order of this machine: others would take its bytes for other numbers."""
    np = module("numpy")
    array = np.asarray(array)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def to_jax(tensor: Tensor, device: Any = None, dtype: Any = None) -> Any:
    """`Tensor.jax`."""
    jax = module("jax")
    array = tensor.numpy(dtype)
    wide = (array.dtype.itemsize == 8 and array.dtype.kind in "iuf") or (array.dtype.kind == "c" and array.dtype.itemsize == 16)
    if wide and dtype is None and not jax.config.jax_enable_x64:
        raise ValueError(f"{tensor.name!r} is {tensor.dtype}, which JAX would narrow: set jax_enable_x64, or give dtype=")
    made = jax_of(array)
    return jax.device_put(made, device) if device is not None else made


def jax_of(array: Any) -> Any:
    """An array of NumPy as one of JAX."""
    return module("jax.numpy", "jax").asarray(native(array))


def to_tensorflow(tensor: Tensor, dtype: Any = None) -> Any:
    """`Tensor.tensorflow`."""
    return tensorflow_of(tensor.numpy(dtype))


def tensorflow_of(array: Any) -> Any:
    """An array of NumPy as a tensor of TensorFlow."""
    return module("tensorflow").constant(native(array))


def to_mlx(tensor: Tensor, dtype: Any = None) -> Any:
    """`Tensor.mlx`."""
    return mlx_of(tensor.numpy(dtype))


def mlx_of(array: Any) -> Any:
    """An array of NumPy as one of MLX."""
    mx = module("mlx.core", "mlx")
    array = native(array)
    if array.dtype.name == "bfloat16":
        return mx.array(array.view("uint16")).view(mx.bfloat16)
    return mx.array(array)
