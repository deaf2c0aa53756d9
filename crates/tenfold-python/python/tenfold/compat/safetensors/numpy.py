"""Arrays of NumPy, as `safetensors.numpy` has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..._inputs import Lazy, _given
from ..._load import load as _load
from ..._save import dumps
from ..._save import save as _save

__all__ = ["load", "load_file", "save", "save_file"]


def save(tensor_dict: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file."""
    return dumps(_plain(tensor_dict), format="safetensors", metadata=metadata)


def save_file(
    tensor_dict: Mapping[str, Any], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes a safetensors file."""
    _save(filename, _plain(tensor_dict), format="safetensors", metadata=metadata)


def load(data: Any) -> dict[str, Any]:
    """The tensors of a file in memory."""
    return _load(data, copy=True)


def load_file(filename: str | os.PathLike[str]) -> dict[str, Any]:
    """The tensors of a file of any format."""
    return _load(filename, copy=True)


def _same(array: Any) -> Any:
    return array


def _plain(tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    """Each name is written whole, without a word about what is shared."""
    plain: dict[str, Any] = {}
    seen: set[Any] = set()
    for name, array in tensors.items():
        given = _given(name, array)
        if given.identity is None or given.identity not in seen:
            seen.add(given.identity)
            plain[name] = array
        else:
            plain[name] = Lazy(given.dtype, given.shape, partial(_same, array))
    return plain
