"""How archives and tensors are shown as text. Nothing is read for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._results import _size

if TYPE_CHECKING:
    from ._tenfold import Archive, Tensor


def archive(archive: Archive) -> str:
    """`repr` of an archive."""
    if archive.closed:
        return "<Archive closed>"
    name = f"{archive.path.name}: " if archive.path is not None else ""
    format = f"{archive.format}, " if archive.format else ""
    count = len(archive)
    return f"<Archive {name}{format}{count} tensor{'' if count == 1 else 's'}, {_size(archive.nbytes)}>"


def tensor(tensor: Tensor) -> str:
    """`repr` of a tensor."""
    if tensor.archive.closed:
        return "<Tensor of a closed archive>"
    return f"<Tensor {tensor.name!r} {tensor.dtype} {tensor.shape} {tensor.layout}>"


def tree(archive: Archive) -> str:
    """Names as groups with their types, shapes and sizes."""
    tensors = list(archive.values())
    lines = []
    for pattern, places in archive._groups():
        first = tensors[places[0]]
        total = sum(tensors[place].nbytes for place in places)
        times = f"{len(places)} × " if len(places) > 1 else ""
        lines.append((pattern, f"{times}{first.dtype} {first.shape}", _size(total)))
    if not lines:
        return "no tensors"
    widths = [max(len(line[column]) for line in lines) for column in range(2)]
    return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>10}" for a, b, c in lines)
