"""Tensors of PyTorch, as `safetensors.torch` has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch

from ..._inputs import build
from ..._open import open_for
from ..._save import dumps
from ..._save import save as _save

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model", "storage_ptr", "storage_size"]


def storage_ptr(tensor: torch.Tensor) -> int:
    """Where the storage of a tensor begins."""
    return int(tensor.untyped_storage().data_ptr())


def storage_size(tensor: torch.Tensor) -> int:
    """The bytes of the storage of a tensor."""
    return int(tensor.untyped_storage().nbytes())


def _end_ptr(tensor: torch.Tensor) -> int:
    """Where the last element of a tensor ends."""
    if not tensor.numel():
        return int(tensor.data_ptr())
    last = sum((dim - 1) * step for dim, step in zip(tensor.shape, tensor.stride(), strict=True))
    return int(tensor.data_ptr() + (last + 1) * tensor.element_size())


def _is_complete(tensor: torch.Tensor) -> bool:
    """Whether a tensor is all of its storage."""
    whole = tensor.nelement() * tensor.element_size() == storage_size(tensor)
    return bool(whole and tensor.data_ptr() == storage_ptr(tensor))


def _find_shared_tensors(state_dict: Mapping[str, torch.Tensor]) -> list[set[str]]:
    """The names by their storages, those of one storage together if what they see of it overlaps."""
    storages: dict[tuple[Any, int, int], list[str]] = {}
    for name, tensor in state_dict.items():
        if tensor.device.type != "meta" and storage_ptr(tensor) and storage_size(tensor):
            key = (tensor.device, storage_ptr(tensor), storage_size(tensor))
            storages.setdefault(key, []).append(name)
    groups: list[set[str]] = []
    for names in storages.values():
        end = -1
        for name in sorted(names, key=lambda name: state_dict[name].data_ptr()):
            tensor = state_dict[name]
            if tensor.data_ptr() < end:
                groups[-1].add(name)
            else:
                groups.append({name})
            end = max(end, _end_ptr(tensor))
    return groups


def _remove_duplicate_names(
    state_dict: Mapping[str, torch.Tensor],
    *,
    preferred_names: list[str] | None = None,
    discard_names: list[str] | None = None,
) -> dict[str, list[str]]:
    """Of names that share memory the one to keep, with those that are left out."""
    preferred, discarded = set(preferred_names or ()), set(discard_names or ())
    removed: dict[str, list[str]] = {}
    for names in _find_shared_tensors(state_dict):
        complete = sorted(name for name in names if _is_complete(state_dict[name]))
        if not complete:
            only = next(iter(names))
            if len(names) == 1 and state_dict[only].numel() == 0:
                continue
            raise RuntimeError(
                f"none of {sorted(names)} is all of its storage: which one is to be kept cannot be told; "
                "clone() them before saving"
            )
        keep = next(
            iter(
                [name for name in complete if name in preferred]
                or [name for name in complete if name not in discarded]
                or complete
            )
        )
        rest = sorted(name for name in names if name != keep)
        if rest:
            removed[keep] = rest
    return removed


def _checked(tensors: Any) -> dict[str, torch.Tensor]:
    """What can be written, as safetensors judges it."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    sparse = []
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        if tensor.layout is not torch.strided:
            sparse.append(name)
    if sparse:
        raise ValueError(
            f"You are trying to save a sparse tensors: `{sparse}` which this library does not support. You can make it"
            " a dense tensor before saving with `.to_dense()` but be aware this might make a much larger file than"
            " needed."
        )
    shared = [names for names in _find_shared_tensors(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(f"tensors share memory, which would be written twice: {shared}; use save_model, or clone() them")
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"tensor `{name}` is not contiguous; call .contiguous() before saving, or use tenfold.save, which does"
            )
        if tensor.device.type == "meta":
            raise RuntimeError(f"Cannot copy out of meta tensor `{name}`: it has no data")
    return tensors


def save(tensors: dict[str, torch.Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file."""
    return dumps(build(_checked(tensors), metadata)[0], format="safetensors")


def save_file(
    tensors: dict[str, torch.Tensor], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes a safetensors file."""
    _save(filename, build(_checked(tensors), metadata)[0], format="safetensors")


def load(data: bytes) -> dict[str, torch.Tensor]:
    """The tensors of a file in memory."""
    return open_for("", data, {}).torch(copy=True)


def load_file(filename: str | os.PathLike[str], device: str | int = "cpu", *, backend: str = "mmap") -> dict[str, torch.Tensor]:
    """The tensors of a file of any format."""
    return open_for("", filename, {"mmap": backend == "mmap"}).torch(device=device)


def save_model(
    model: torch.nn.Module, filename: str, metadata: dict[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Writes the tensors of a module, those that are shared once; the metadata says which names were left out."""
    state = model.state_dict()
    said = dict(metadata or {})
    for keep, names in _remove_duplicate_names(state).items():
        for name in names:
            said.setdefault(name, keep)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    try:
        save_file(dict(state), filename, said)
    except ValueError as error:
        raise ValueError(f"{error} Or use save_model(..., force_contiguous=True)") from None


def load_model(
    model: torch.nn.Module,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: str | int = "cpu",
    *,
    backend: str = "mmap",
) -> tuple[list[str], list[str]]:
    """Loads a file into a module: gives the names that it misses, and those that it does not know."""
    state = load_file(filename, device=device, backend=backend)
    known = model.state_dict()
    left_out = _remove_duplicate_names(known, preferred_names=list(state))
    missing, unexpected = model.load_state_dict(state, strict=False)
    absent = set(missing)
    for names in left_out.values():
        for name in names:
            if name in absent:
                absent.remove(name)
            else:
                unexpected.append(name)
    missing, unexpected = sorted(absent), sorted(unexpected)
    if strict and (missing or unexpected):
        listed = [(kind, names) for kind, names in (("Missing", missing), ("Unexpected", unexpected)) if names]
        lines = []
        for kind, names in listed:
            quoted = ", ".join(f'"{name}"' for name in names)
            lines.append(f"{kind} key(s) in state_dict: {quoted}")
        raise RuntimeError(f"Error(s) in loading state_dict for {type(model).__name__}:\n    " + "\n    ".join(lines))
    return missing, unexpected
