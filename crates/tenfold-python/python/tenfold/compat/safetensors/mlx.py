"""Arrays of MLX, as `safetensors.mlx` has them."""

from __future__ import annotations

import os
from typing import Any

from ..._load import load as _load
from .numpy import save, save_file

__all__ = ["load", "load_file", "save", "save_file"]


def load(data: Any) -> dict[str, Any]:
    """The tensors of a file in memory."""
    return _load(data, framework="mlx")


def load_file(filename: str | os.PathLike[str]) -> dict[str, Any]:
    """The tensors of a file of any format."""
    return _load(filename, framework="mlx")
