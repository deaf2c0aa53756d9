"""How archives and tensors are shown. Nothing is read for it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ._results import _size

if TYPE_CHECKING:
    from ._tenfold import Archive, Tensor

#: Tensors that a table shows.
_SHOWN = 40
_LONGEST = 200


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


def _cut(text: str) -> str:
    return escape(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def archive_html(archive: Archive) -> str:
    """A table for notebooks: no script, nothing from outside, under 64 KiB."""
    if archive.closed:
        return f"<pre>{escape(repr(archive))}</pre>"
    tensors = list(archive.values())
    groups = archive._groups()
    rows = []
    shown = 0
    for pattern, places in groups:
        if shown >= _SHOWN:
            break
        shown += 1
        first = tensors[places[0]]
        total = sum(tensors[place].nbytes for place in places)
        shape = " × ".join(str(dim) for dim in first.shape) or "scalar"
        count = f" <small>({len(places)})</small>" if len(places) > 1 else ""
        rows.append(
            f"<tr><td style='text-align:left'><code>{_cut(pattern)}</code>{count}</td>"
            f"<td style='text-align:left'>{escape(str(first.dtype))}</td>"
            f"<td style='text-align:left'>{_cut(shape)}</td><td>{_size(total)}</td></tr>"
        )
    more = f"<p>… and {len(groups) - shown} more groups of tensors</p>" if len(groups) > shown else ""
    metadata = archive.metadata
    said = "".join(
        f"<tr><td style='text-align:left'><code>{_cut(key)}</code></td><td style='text-align:left'>{_cut(kind)}</td></tr>"
        for key, kind in list(metadata.types.items())[:_SHOWN]
    )
    details = f"<details><summary>{len(metadata)} keys of metadata</summary><table>{said}</table></details>" if said else ""
    head = "<tr><th style='text-align:left'>name</th><th style='text-align:left'>type</th>"
    head += "<th style='text-align:left'>shape</th><th>size</th></tr>"
    return (
        f"<div><strong>{_cut(repr(archive)[1:-1])}</strong>{details}"
        f"<details open><summary>{len(tensors)} tensors</summary><table>{head}{''.join(rows)}</table>{more}</details></div>"
    )
