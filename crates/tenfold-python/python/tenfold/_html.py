"""How archives, tensors and results look in notebooks: tables without scripts and without anything from outside, below 64 KiB.

Colors are those of the notebook, light or dark. Of tensors a few numbers are read where that is cheap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ._results import _count, _size

if TYPE_CHECKING:
    from ._results import ArchiveStats, Change, Diff, Inspection, Scan, Stats, Verification
    from ._tenfold import Archive, Tensor

#: Rows that a table shows.
_SHOWN = 40
#: Bytes that a table takes, at most; there are two at most.
_TABLE = 24 << 10
#: Characters of a name or a value.
_LONGEST = 120
#: Types of values that are not shown.
_LONG = frozenset({"bytes", "elsewhere", "encoded", "list", "map"})
#: Rows and columns of numbers at each edge.
_EDGE = 4
#: Bytes that are made of a tensor for its numbers, at most, where they are not in memory already.
_CHEAP = 16 << 20

# Twice the class: notebooks style the tables of all outputs.
_STYLE = """<style>
.tenfold{font-size:13px;line-height:1.45;max-width:100%;overflow-x:auto}
.tenfold.tenfold .tf-head{margin:2px 0 6px}
.tenfold.tenfold .tf-dim{opacity:.65}
.tenfold.tenfold code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px;background:none;color:inherit;padding:0;
white-space:pre-wrap;overflow-wrap:anywhere}
.tenfold.tenfold table{border-collapse:collapse;border:0;margin:2px 0 6px;font-size:12px;table-layout:auto}
.tenfold.tenfold tr,.tenfold.tenfold tbody tr:nth-child(odd),.tenfold.tenfold tbody tr:nth-child(even){background:none}
.tenfold.tenfold tbody tr:hover{background:rgba(127,127,127,.12)}
.tenfold.tenfold td,.tenfold.tenfold th{border:0;border-bottom:1px solid rgba(127,127,127,.25);padding:2px 12px 2px 0;
text-align:left;vertical-align:top;color:inherit;max-width:60ch}
.tenfold.tenfold th{font-weight:600;opacity:.65}
.tenfold.tenfold .tf-n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.tenfold.tenfold summary{cursor:pointer}
.tenfold.tenfold details{margin:0 0 4px}
.tenfold.tenfold td details{margin:0}
.tenfold.tenfold .tf-bar{display:inline-block;height:7px;border-radius:2px;background:#3b82f6;opacity:.75}
.tenfold.tenfold .tf-grid td{font-family:ui-monospace,Menlo,Consolas,monospace;text-align:right;padding:1px 8px;border:0;
white-space:nowrap}
.tenfold.tenfold .tf-good{color:#16a34a}.tenfold.tenfold .tf-bad{color:#dc2626}.tenfold.tenfold .tf-warn{color:#ca8a04}
.tenfold.tenfold .tf-chip{border:1px solid rgba(127,127,127,.4);border-radius:3px;padding:0 5px;margin-right:4px;font-size:11px;
white-space:nowrap}
</style>"""


def _page(*parts: str) -> str:
    return f"{_STYLE}<div class='tenfold'>{''.join(parts)}</div>"


def _cut(text: object, longest: int = _LONGEST) -> str:
    text = str(text)
    return escape(text if len(text) <= longest else text[: longest - 1] + "…")


def _code(text: object) -> str:
    return f"<code>{_cut(text)}</code>"


def _head(name: str, *facts: str) -> str:
    said = " · ".join(escape(fact) for fact in facts if fact)
    return f"<div class='tf-head'><b>{_cut(name)}</b> <span class='tf-dim'>{said}</span></div>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    """Cells are HTML already; columns in `numbers` are aligned on the right."""

    right = " class='tf-n'"

    def line(cells: Sequence[str], tag: str) -> str:
        shown = (f"<{tag}{right if at in numbers else ''}>{cell}</{tag}>" for at, cell in enumerate(cells))
        return f"<tr>{''.join(shown)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    top = f"<thead>{line([escape(cell) for cell in head], 'th')}</thead>" if any(head) else ""
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _fitting(rows: Iterable[Sequence[str]], nbytes: int = _TABLE) -> list[Sequence[str]]:
    """The rows that a table has room for, whatever is in them."""
    fitting: list[Sequence[str]] = []
    for row in rows:
        nbytes -= sum(len(cell.encode()) for cell in row)
        if nbytes < 0 or len(fitting) == _SHOWN:
            break
        fitting.append(row)
    return fitting


def _more(count: int, what: str) -> str:
    return f"<div class='tf-dim'>… and {count} more {what}</div>" if count > 0 else ""


def _folded(title: str, inside: str, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{title}</summary>{inside}</details>"


def _shape(shape: Sequence[int]) -> str:
    return " × ".join(str(dim) for dim in shape) or "scalar"


def archive(archive: Archive) -> str:
    """An archive: its metadata, and its tensors in groups of names."""
    if archive.closed:
        return f"<pre>{escape(repr(archive))}</pre>"
    tensors = list(archive.values())
    groups = archive._groups()
    totals = [sum(tensors[place].nbytes for place in places) for _, places in groups]
    largest = max(totals, default=0) or 1

    def row(pattern: str, places: list[int], total: int) -> Sequence[str]:
        first = tensors[places[0]]
        name = _code(pattern)
        if len(places) > 1:
            inside = "<br>".join(_code(tensors[place].name) for place in places[:4])
            inside += _more(len(places) - 4, "names")
            name = _folded(f"{name} <span class='tf-dim'>× {len(places)}</span>", inside)
        bar = f"<span class='tf-bar' style='width:{max(1, round(60 * total / largest))}px'></span>"
        return (name, escape(str(first.dtype)), _cut(_shape(first.shape)), escape(_size(total)), bar)

    rows = _fitting(row(pattern, places, total) for (pattern, places), total in zip(groups, totals, strict=True))
    count = len(tensors)
    name = archive.path.name if archive.path is not None else "Archive"
    version = f" {archive.version}" if archive.version else ""
    facts = (f"{archive.format}{version}", _count(count, "tensor"), _size(archive.nbytes))
    table = _table(("name", "type", "shape", "size", ""), rows, frozenset({3})) if rows else ""
    return _page(
        _head(name, *facts, _count(len(archive.files), "file") if len(archive.files) > 1 else ""),
        _findings(archive.findings),
        _metadata(archive.metadata),
        table,
        _more(len(groups) - len(rows), "groups of tensors"),
    )


def _findings(findings: Sequence[Any]) -> str:
    warned = [found for found in findings if found.severity != "note"]
    if not warned:
        return ""
    shown = "".join(f"<div class='tf-warn'>⚠ {_cut(found, 300)}</div>" for found in warned[:3])
    return shown + _more(len(warned) - 3, "findings")


def _metadata(metadata: Any) -> str:
    if not len(metadata):
        return ""

    def row(key: str, kind: str) -> Sequence[str]:
        # Lists can be long, and are not read for this.
        value = "" if kind in _LONG else _code(metadata[key])
        return (_code(key), value, f"<span class='tf-dim'>{_cut(kind)}</span>")

    rows = _fitting(row(key, kind) for key, kind in metadata.types.items())
    inside = _table(("", "", ""), rows) + _more(len(metadata) - len(rows), "keys")
    return _folded(f"{_count(len(metadata), 'key')} of metadata", inside)


def tensor(tensor: Tensor) -> str:
    """A tensor: what it is, and the numbers at its edges."""
    if tensor.archive.closed:
        return f"<pre>{escape(repr(tensor))}</pre>"
    facts = ["" if tensor.layout == "row-major" else tensor.layout]
    facts += ["big-endian" if tensor.byteorder == "big" else "", tensor.codec or ""]
    stored = tensor.stored_nbytes
    size = _size(tensor.nbytes) + (f" ({_size(stored)} in the file)" if stored != tensor.nbytes else "")
    chips = "".join(f"<span class='tf-chip'>{escape(fact)}</span>" for fact in facts if fact)
    return _page(
        _head(tensor.name, str(tensor.dtype), _shape(tensor.shape), size),
        f"<div class='tf-head'>{chips}</div>" if chips else "",
        _metadata(tensor.metadata),
        _preview(tensor),
    )


def _preview(tensor: Tensor) -> str:
    if tensor.defect is not None:
        return f"<div class='tf-bad'>{_cut(tensor.defect, 300)}</div>"
    if not tensor.size:
        return "<div class='tf-dim'>no elements</div>"
    if not tensor.is_zero_copy and tensor.size * ((tensor._numbers.bits or 8) // 8) > _CHEAP:
        return "<div class='tf-dim'>its numbers would have to be made to be shown</div>"
    try:
        return _numbers(tensor)
    except Exception as error:
        # Whatever is the matter with a tensor, a notebook shows the rest.
        return f"<div class='tf-bad'>{_cut(error, 300)}</div>"


def _numbers(tensor: Tensor) -> str:
    """The numbers of the last two dimensions, at the beginning of the others."""
    array = tensor.numpy()
    shape = tensor.shape
    leading = (0,) * max(0, len(shape) - 2)
    rows = _edges(shape[-2]) if len(shape) > 1 else [None]
    columns = _edges(shape[-1]) if shape else [None]
    lines = []
    for row in rows:
        cells = []
        for column in columns:
            if row == -1 or column == -1:
                cells.append("<td class='tf-dim'>" + ("⋮" if row == -1 and column != -1 else "⋯") + "</td>")
                continue
            index = leading + tuple(at for at in (row, column) if at is not None)
            cells.append(_cell(array[index]))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    where = f"<div class='tf-dim'>[{', '.join('0' for _ in leading)}, :, :]</div>" if leading else ""
    return f"{where}<table class='tf-grid'><tbody>{''.join(lines)}</tbody></table>"


def _edges(length: int) -> list[int | None]:
    """The places that are shown; -1 stands for those between."""
    if length <= 2 * _EDGE + 1:
        return list(range(length))
    return [*range(_EDGE), -1, *range(length - _EDGE, length)]


def _cell(value: Any) -> str:
    if getattr(value, "ndim", 0):
        return f"<td>{_cut(value, 40)}</td>"
    plain = value.item() if hasattr(value, "item") else value
    if not isinstance(plain, (bool, int, float, complex)):
        plain = float(plain) if hasattr(plain, "__float__") else plain
    text = _number(plain)
    is_odd = isinstance(plain, (float, complex)) and not _is_finite(plain)
    shade = " class='tf-bad'" if is_odd else " class='tf-dim'" if plain == 0 else ""
    return f"<td{shade}>{escape(text)}</td>"


def _is_finite(value: float | complex) -> bool:
    return math.isfinite(value.real) and math.isfinite(value.imag)


def _number(value: Any) -> str:
    if isinstance(value, complex):
        sign = "-" if math.copysign(1, value.imag) < 0 else "+"
        return f"{value.real:.4g}{sign}{abs(value.imag):.4g}j"
    if isinstance(value, float):
        return f"{value:.5g}"
    return str(value)


def _figure(value: Any) -> str:
    return "" if value is None else escape(_number(value))


def stats(stats: Stats) -> str:
    """The figures of one tensor."""
    rows = [(escape(name), _figure(value)) for name, value in _figures(stats)]
    return _page(_table(("", ""), rows, frozenset({1})), _histogram(stats.histogram))


def _figures(stats: Stats) -> list[tuple[str, Any]]:
    return [
        ("elements", stats.elements),
        ("min", stats.min),
        ("max", stats.max),
        ("mean", stats.mean),
        ("std", stats.std),
        ("zeros", stats.zeros),
        ("NaN", stats.nans),
        ("infinities", stats.infs),
        ("subnormals", stats.subnormals),
    ]


def _histogram(histogram: Any, height: int = 48) -> str:
    if histogram is None or not histogram.counts:
        return ""
    most = max(histogram.counts) or 1
    counts = histogram.counts[:200]
    width = max(2, min(12, 480 // len(counts)))
    bars = "".join(
        f"<span class='tf-bar' style='width:{width}px;height:{round(height * count / most)}px;border-radius:1px 1px 0 0'"
        f" title='{escape(_number(low))} … {escape(_number(high))}: {count}'></span>"
        for count, low, high in zip(counts, histogram.edges, histogram.edges[1:], strict=False)
    )
    low, high = _number(histogram.edges[0]), _number(histogram.edges[-1])
    return (
        f"<div style='display:flex;align-items:flex-end;gap:1px;height:{height}px'>{bars}</div>"
        f"<div class='tf-dim' style='display:flex;justify-content:space-between;width:{len(counts) * (width + 1)}px'>"
        f"<span>{escape(low)}</span><span>{escape(high)}</span></div>"
    )


def archive_stats(stats: ArchiveStats) -> str:
    """The figures of all tensors."""

    def row(name: str, one: Stats) -> tuple[str, ...]:
        odd = f"<span class='tf-bad'>{one.nans + one.infs}</span>" if one.nans + one.infs else "0"
        zeros = f"{100 * one.zeros / one.numbers:.3g} %" if one.numbers else ""
        figures = (one.min, one.max, one.mean, one.std)
        return (name, str(one.numbers), *(_figure(value) for value in figures), zeros, odd)

    rows = _fitting(row(_code(name), stats[name]) for name in stats)
    more = _more(len(stats) - len(rows), "tensors")
    rows.append(row("<b>all</b>", stats.total))
    errors = "".join(
        f"<div class='tf-bad'>{_code(name)}: {_cut(why, 200)}</div>" for name, why in list(stats.errors.items())[:5]
    )
    head = ("name", "numbers", "min", "max", "mean", "std", "zeros", "NaN and ∞")
    return _page(
        _head(_count(len(stats), "tensor")),
        _table(head, rows, frozenset(range(1, 8))),
        more,
        errors,
        _histogram(stats.total.histogram),
    )


#: How a change is marked.
_MARKS = {
    "added": ("+", "tf-good"),
    "removed": ("−", "tf-bad"),
    "renamed": ("→", "tf-warn"),
    "changed": ("≠", "tf-warn"),
    "unreadable": ("✗", "tf-bad"),
}


def diff(diff: Diff) -> str:
    """What is different between two files."""
    same = _count(diff.equal_tensors, "tensor")
    if diff.equal:
        return _page(f"<div class='tf-head'><b class='tf-good'>✓ equal</b> <span class='tf-dim'>{same}</span></div>")

    def row(change: Change) -> Sequence[str]:
        mark, shade = _MARKS.get(change.kind, ("", ""))
        a, b = (None if side is None else f"{side.dtype} {_shape(side.shape)}" for side in (change.a, change.b))
        what = " → ".join(_cut(side) for side in dict.fromkeys(side for side in (a, b) if side is not None))
        name = _code(change.name)
        if change.kind == "renamed" and change.a is not None and change.b is not None:
            name = f"{_code(change.a.name)} → {_code(change.b.name)}"
        return (f"<span class='{shade}'>{mark} {escape(change.kind)}</span>", name, what, _difference(change))

    rows = _fitting(row(change) for change in diff.changes)
    keys = _fitting(
        (_code(change.tensor) if change.tensor else "", _code(change.key), _side(change.a), _side(change.b))
        for change in diff.metadata
    )
    tables = _table(("", "name", "type and shape", "values"), rows) if rows else ""
    tables += _more(len(diff.changes) - len(rows), "tensors")
    if keys:
        tables += _folded(
            f"{_count(len(diff.metadata), 'key')} of metadata", _table(("tensor", "key", "a", "b"), keys), not rows
        )
    facts = (
        f"{_count(len(diff.changes), 'tensor')} and {_count(len(diff.metadata), 'key')} of metadata differ",
        f"{same} equal",
    )
    return _page(_head("Different", *facts), tables)


def _side(value: Any) -> str:
    return "<span class='tf-dim'>—</span>" if value is None else _code(value)


def _difference(change: Any) -> str:
    if change.error:
        return f"<span class='tf-bad'>{_cut(change.error, 200)}</span>"
    values = change.values or {}
    said = []
    if values:
        said.append(f"{values['different']} of {values['numbers']} differ")
    for key, name in (("max_abs", "by at most"), ("max_rel", "relatively"), ("cosine", "cosine")):
        if values.get(key) is not None:
            said.append(f"{name} {_number(float(values[key]))}")
    return escape(" · ".join(said))


def verification(verification: Verification) -> str:
    """Whether a file is sound, and what was found."""
    verdict = "<b class='tf-good'>✓ sound</b>" if verification.sound else "<b class='tf-bad'>✗ not sound</b>"
    facts = " ".join(part for part in (verification.format, verification.version) if part)
    shades = {"error": "tf-bad", "warning": "tf-warn"}
    rows = _fitting(
        (
            f"<span class='{shades.get(found.severity, 'tf-dim')}'>{escape(found.severity)}</span>",
            _code(found.rule),
            _code(found.tensor) if found.tensor else "",
            _cut(found.message, 300),
        )
        for found in verification.findings
    )
    notes = "".join(f"<div class='tf-dim'>{_cut(note.message, 300)}</div>" for note in verification.notes[:5])
    return _page(
        f"<div class='tf-head'>{verdict} <span class='tf-dim'>{escape(facts)}</span></div>",
        _table(("", "rule", "tensor", "what"), rows) if rows else "",
        _more(len(verification.findings) - len(rows), "findings"),
        notes,
    )


def inspection(inspection: Inspection) -> str:
    """What is in a file: as its archive."""
    return archive(inspection._archive)


def scan(scan: Scan) -> str:
    """What the pickles of a file would import."""
    shades = {"harmless": "tf-good", "dangerous": "tf-bad"}
    shade = shades.get(scan.verdict, "tf-warn")
    order = {"dangerous": 0, "unknown": 1}
    found = sorted(scan.imports, key=lambda one: order.get(one.verdict, 2))
    rows = _fitting(
        (
            f"<span class='{shades.get(one.verdict, 'tf-warn')}'>{escape(one.verdict)}</span>",
            _code(f"{one.module}.{one.name}"),
            _cut(one.could or ""),
            str(one.times),
        )
        for one in found
    )
    unread = "".join(
        f"<div class='tf-warn'>not looked into: {_cut(one.member)}: {_cut(one.why, 200)}</div>" for one in scan.unread[:5]
    )
    return _page(
        f"<div class='tf-head'><b class='{shade}'>{escape(scan.verdict)}</b> "
        f"<span class='tf-dim'>{_count(len(scan.pickles), 'pickle')}</span></div>",
        _table(("", "import", "which", "times"), rows, frozenset({3})) if rows else "",
        _more(len(found) - len(rows), "imports"),
        unread,
    )
