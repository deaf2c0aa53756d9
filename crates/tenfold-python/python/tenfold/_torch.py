"""Tensors of PyTorch."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import _tenfold
from ._errors import UnsupportedError
from ._frameworks import about, is_subbyte, module, native, read_blocks, why

if TYPE_CHECKING:
    from ._progress import Told
    from ._tenfold import Archive, DType, Tensor

#: What is copied to a device at once.
_STAGED = 64 << 20

#: Memory for which NumPy asks for large pages.
_LARGE = 4 << 20

#: Types of PyTorch by the identity of ours, which live as long as the interpreter: for what is done for each of many tensors.
_types: dict[int, Any] = {}


@cache
def torch_dtype(name: str) -> Any:
    """PyTorch's type of this name."""
    torch = module("torch")
    known = {"float4_e2m1fn": "float4_e2m1fn_x2", "float16x2": "complex32"}
    found = getattr(torch, known.get(name, name), None)
    if not isinstance(found, torch.dtype):
        raise UnsupportedError(f"PyTorch has no {name}", kind="unsupported", rule="file.dtype")
    return found


def _type_of(tensor: Tensor) -> Any:
    """PyTorch's type of a tensor's numbers."""
    try:
        return torch_dtype(tensor._numbers.name)
    except UnsupportedError as error:
        raise about(tensor, error) from None


def of_numpy(array: Any, device: Any = None) -> Any:
    """An array of NumPy as a tensor of its own, of types that PyTorch does not take from NumPy too."""
    np, torch = module("numpy"), module("torch")
    array = native(np.array(array, order="C"))
    name = array.dtype.name
    if name in ("int2", "int4", "uint1", "uint2", "uint4"):
        array = array.astype("uint8" if name[0] == "u" else "int8")
    elif name == "float4_e2m1fn":
        if not array.ndim or array.shape[-1] % 2:
            raise UnsupportedError(
                "PyTorch has numbers of 4 bits in pairs, and the last dimension is odd", kind="unsupported", rule="file.dtype"
            )
        codes = array.view(np.uint8)
        array = codes[..., ::2] | codes[..., 1::2] << 4
        return torch.from_numpy(array).view(torch_dtype(name)).to(device)
    dtype = torch_dtype(array.dtype.name)
    if not array.size:
        return torch.empty(array.shape, dtype=dtype, device=device)
    made = torch.from_numpy(array.reshape(-1).view(np.uint8)).view(dtype).reshape(array.shape)
    return made.to(device) if device not in (None, "cpu") else made


def to_torch(tensor: Tensor, device: Any = None, dtype: Any = None, copy: bool | None = None) -> Any:
    """`Tensor.torch`."""
    torch = module("torch")
    if dtype is not None and _tenfold.dtype(dtype) != tensor._numbers:
        if copy is False:
            raise ValueError(f"{tensor.name!r}: a cast needs a copy")
        return to_torch(tensor._as(_tenfold.dtype(dtype)), device)
    if device is not None and torch.device(device).type != "cpu":
        if copy is False:
            raise ValueError(f"{tensor.name!r}: another device needs a copy")
        return _on_cpu(torch, tensor, True, _is_pinned(torch, torch.device(device))).to(device, non_blocking=True)
    if copy is not True:
        place = tensor._mapped_at()
        found = None if place is None else shared(tensor.archive, place)
        if found is not None:
            return found
    return _on_cpu(torch, tensor, copy)


def _private(archive: Archive, file: int) -> mmap.mmap | None:
    """A mapping of a file that can be written to without changing the file; one for each file of an archive."""
    known: dict[int, mmap.mmap | None] = archive.__dict__.setdefault("_private", {})
    if file not in known:
        descriptor = archive._descriptor(file)
        if descriptor is None:
            known[file] = None
        else:
            try:
                known[file] = mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)
            except (OSError, ValueError):
                known[file] = None
            finally:
                os.close(descriptor)
    return known[file]


def shared(archive: Archive, place: tuple[Any, ...]) -> Any:
    """A tensor over the private mapping of its file; `None` where there is none."""
    return _sharing(archive)(*place)


def _sharing(archive: Archive) -> Callable[..., Any]:
    """What makes tensors over the private mappings of an archive's files."""
    frombuffer = module("torch").frombuffer

    def one(file: int, offset: int, is_columns: bool, shape: tuple[int, ...], size: int, dtype: DType) -> Any:
        mapped = _private(archive, file)
        if mapped is None:
            return None
        kind = _types.get(id(dtype))
        if kind is None:
            kind = _types[id(dtype)] = torch_dtype(dtype.name)
        flat = frombuffer(mapped, dtype=kind, count=size, offset=offset)
        if is_columns:
            return flat.view(shape[::-1]).permute(*reversed(range(len(shape))))
        return flat if len(shape) == 1 else flat.view(shape)

    return one


def _on_cpu(torch: ModuleType, tensor: Tensor, copy: bool | None, pinned: bool = False) -> Any:
    """A tensor in memory of its own."""
    numbers = tensor._numbers
    shape = tensor.shape
    if numbers.name == "float4_e2m1fn":
        return _pairs(torch, tensor)
    if is_subbyte(numbers):
        plain = {"uint": torch.uint8, "int": torch.int8}.get(numbers.kind)
        if plain is None:
            raise about(tensor, UnsupportedError(f"PyTorch has no {numbers}", rule="file.dtype"))
        if not tensor.size:
            return torch.empty(shape, dtype=plain)
        return torch.frombuffer(bytearray(tensor._unpacked(None)), dtype=plain).reshape(shape)
    dtype = _type_of(tensor)
    if not tensor.size:
        return torch.empty(shape, dtype=dtype)
    if copy is False:
        raise ValueError(f"{tensor.name!r} cannot be viewed by PyTorch as it is stored ({why(tensor)})")
    nbytes = tensor._room(None)
    if pinned:
        made = torch.empty(shape, dtype=dtype, pin_memory=True)
    else:
        made = _memory(nbytes).view(dtype).view(shape)
    tensor.read_into(made)
    return made


def _memory(nbytes: int) -> Any:
    """Memory that is about to be filled."""
    torch = module("torch")
    if nbytes >= _LARGE:
        # NumPy asks the system for large pages, and PyTorch does not: many small ones take longer than what is read into them.
        try:
            return torch.from_numpy(module("numpy").empty(nbytes, "uint8"))
        except (ImportError, RuntimeError):
            # None, or a PyTorch that was built without it.
            pass
    return torch.empty(nbytes, dtype=torch.uint8)


def _pairs(torch: ModuleType, tensor: Tensor) -> Any:
    """Two numbers of 4 bits in each element, as PyTorch has them."""
    shape = tensor.shape
    if not shape or shape[-1] % 2:
        raise UnsupportedError(
            f"{tensor.name!r}: PyTorch has numbers of 4 bits in pairs, and the last dimension is odd",
            kind="unsupported",
            rule="file.dtype",
            tensor=tensor.name,
        )
    dtype = torch_dtype("float4_e2m1fn")
    halved = (*shape[:-1], shape[-1] // 2)
    if not tensor.size:
        return torch.empty(halved, dtype=torch.uint8).view(dtype)
    return torch.frombuffer(bytearray(tensor._canonical()), dtype=torch.uint8).reshape(halved).view(dtype)


def archive_torch(
    archive: Archive, device: Any = None, copy: bool | None = None, progress: Told = None, threads: int = 0
) -> dict[str, Any]:
    """All tensors as those of PyTorch."""
    torch = module("torch")
    target = None if device is None else torch.device(device)
    is_elsewhere = target is not None and target.type != "cpu"
    if is_elsewhere and copy is False:
        raise ValueError("another device needs a copy")
    if copy is True or is_elsewhere:
        made: dict[str, Any] = dict.fromkeys(archive)
        left = list(range(len(made)))
    else:
        made, left = archive._viewed(_sharing(archive))
    if not left:
        return made
    tensors = list(archive.values())
    whole: list[tuple[int, Tensor]] = []
    for at in left:
        tensor = tensors[at]
        if is_subbyte(tensor._numbers) or not tensor.size or copy is False:
            one = _on_cpu(torch, tensor, copy)
            made[tensor.name] = one.to(target) if is_elsewhere else one
        else:
            # What PyTorch does not have shows before anything is read.
            _type_of(tensor)
            whole.append((at, tensor))
    if target is not None and is_elsewhere:
        made.update(_staged(torch, archive, whole, target, progress, threads))
        return made

    for tensor, memory in read_blocks(archive, whole, _memory, progress, threads):
        made[tensor.name] = memory.view(torch_dtype(tensor._numbers.name)).view(tensor.shape)
    return made


def _is_pinned(torch: ModuleType, device: Any) -> bool:
    """Whether memory that stays where it is makes copies to a device faster, and lets them go on by themselves."""
    return bool(device.type == "cuda" and torch.cuda.is_available())


def _staged(
    torch: ModuleType, archive: Archive, tensors: list[tuple[int, Tensor]], device: Any, progress: Told, threads: int
) -> Iterator[tuple[str, Any]]:
    """Tensors on another device: blocks are read into memory of the CPU, and copied while the next one is read."""
    pinned = _is_pinned(torch, device)

    def allocate(nbytes: int) -> Any:
        # What is given back while a copy goes on is not handed out again before its end: PyTorch sees to that.
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=pinned)

    for tensor, memory in read_blocks(archive, tensors, allocate, progress, threads, _STAGED):
        dtype = torch_dtype(tensor._numbers.name)
        there = torch.empty(tensor.shape, dtype=dtype, device=device)
        yield tensor.name, there.copy_(memory.view(dtype).view(tensor.shape), non_blocking=pinned)
    if pinned:
        torch.cuda.synchronize(device)
