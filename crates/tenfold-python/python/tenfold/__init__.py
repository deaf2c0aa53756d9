"""Opens tensor files: neural-network weights and scientific tensors, in many formats.

>>> import tenfold
>>> archive = tenfold.open("fixtures/safetensors/valid/scalars.safetensors")
>>> archive.format, len(archive) > 0
('safetensors', True)
"""

from __future__ import annotations

from collections.abc import Mapping as _Mapping
from typing import TYPE_CHECKING
from typing import Any as _Any

from ._tenfold import Archive, DType, Metadata, Tensor, __version__, dtype

if TYPE_CHECKING:
    from ._convert import convert, edit_metadata, extract, merge, rename, split
    from ._errors import (
        ArgumentError,
        CanceledError,
        CorruptError,
        Error,
        FormatError,
        FormatWarning,
        LimitError,
        LossError,
        SecurityError,
        SharedTensorWarning,
        UnrecognizedError,
        UnsupportedError,
    )
    from ._inputs import Lazy
    from ._load import load, load_model, loads
    from ._open import formats, is_tensor_file, open
    from ._ops import diff, digest, inspect, scan, stats, verify
    from ._results import (
        ArchiveStats,
        Change,
        Diff,
        Digests,
        Encoded,
        File,
        Finding,
        Format,
        Histogram,
        Import,
        Inspection,
        Limits,
        Loss,
        MetadataChange,
        Part,
        Pickle,
        Region,
        Report,
        Scan,
        Side,
        Stats,
        Unread,
        Verification,
    )
    from ._save import dumps, save, save_model
    from ._scale import Converted, Plan, open_plan, plan
    from ._writer import Stream, Writer

_Mapping.register(Archive)
_Mapping.register(Metadata)

__all__ = [
    "Archive",
    "ArchiveStats",
    "ArgumentError",
    "CanceledError",
    "Change",
    "Converted",
    "CorruptError",
    "DType",
    "Diff",
    "Digests",
    "Encoded",
    "Error",
    "File",
    "Finding",
    "Format",
    "FormatError",
    "FormatWarning",
    "Histogram",
    "Import",
    "Inspection",
    "Lazy",
    "LimitError",
    "Limits",
    "Loss",
    "LossError",
    "Metadata",
    "MetadataChange",
    "Part",
    "Pickle",
    "Plan",
    "Region",
    "Report",
    "Scan",
    "SecurityError",
    "SharedTensorWarning",
    "Side",
    "Stats",
    "Stream",
    "Tensor",
    "Unread",
    "UnrecognizedError",
    "UnsupportedError",
    "Verification",
    "Writer",
    "__version__",
    "convert",
    "diff",
    "digest",
    "dtype",
    "dumps",
    "edit_metadata",
    "extract",
    "formats",
    "inspect",
    "is_tensor_file",
    "load",
    "load_model",
    "loads",
    "merge",
    "open",
    "open_plan",
    "plan",
    "rename",
    "save",
    "save_model",
    "scan",
    "split",
    "stats",
    "verify",
]

# Where the other names are. They are imported when they are first asked for: the command needs none of them.
_WHERE = {
    "._errors": (
        "ArgumentError",
        "CanceledError",
        "CorruptError",
        "Error",
        "FormatError",
        "FormatWarning",
        "LimitError",
        "LossError",
        "SecurityError",
        "SharedTensorWarning",
        "UnrecognizedError",
        "UnsupportedError",
    ),
    "._open": ("formats", "is_tensor_file", "open"),
    "._convert": ("convert", "edit_metadata", "extract", "merge", "rename", "split"),
    "._ops": ("diff", "digest", "inspect", "scan", "stats", "verify"),
    "._results": (
        "ArchiveStats",
        "Change",
        "Diff",
        "Digests",
        "Encoded",
        "File",
        "Finding",
        "Format",
        "Histogram",
        "Import",
        "Inspection",
        "Limits",
        "Loss",
        "MetadataChange",
        "Part",
        "Pickle",
        "Region",
        "Report",
        "Scan",
        "Side",
        "Stats",
        "Unread",
        "Verification",
    ),
    "._inputs": ("Lazy",),
    "._load": ("load", "load_model", "loads"),
    "._scale": (
        "Converted",
        "Plan",
        "open_plan",
        "plan",
    ),
    "._save": ("dumps", "save", "save_model"),
    "._writer": ("Stream", "Writer"),
}


def __getattr__(name: str) -> _Any:
    for where, names in _WHERE.items():
        if name in names:
            import importlib

            found = getattr(importlib.import_module(where, __name__), name)
            # Tracebacks, pickles and help say where users find it.
            if isinstance(found, type):
                found.__module__ = __name__
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
