"""What operations return: frozen, and `to_dict()` is the document that the command prints with `--json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._tenfold import Archive, DType

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a file may ask for. The defaults pass every real file that is known."""

    header_bytes: int = _GIB
    rank: int = 1024
    depth: int = 512
    tensor_memory: int = 4 * _GIB
    dense_bytes: int = 16 * _GIB


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value of metadata that has no form in Python, as it is encoded in the file."""

    encoding: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Format:
    """A format: ``reads`` and ``writes`` are its versions, the preferred one first."""

    id: str
    name: str
    extensions: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class File:
    """One of the files that an archive consists of."""

    name: str | None
    path: Path | None
    nbytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """A stored part of a tensor: the values, indices, scales."""

    role: str
    dtype: DType
    file: int | None
    offset: int | None
    nbytes: int
    encoding: str
    byteorder: str
    checksum: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was noticed about a file."""

    severity: str
    rule: str
    tensor: str | None
    file: str | None
    offset: int | None
    message: str

    def __str__(self) -> str:
        about = f"tensor {self.tensor!r}: " if self.tensor else ""
        at = f" (at byte {self.offset})" if self.offset is not None else ""
        return f"{about}{self.message}{at} [{self.rule}]"


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a file does not carry over."""

    tensor: str | None
    what: str
    why: str
    effect: str

    def __str__(self) -> str:
        about = f"tensor {self.tensor!r}: " if self.tensor else ""
        return f"{about}{self.what}: {self.why}"


class _Document:
    """A result with a document behind it."""

    __slots__ = ()
    _document: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The document that the command prints with ``--json``."""
        copy: dict[str, Any] = json.loads(json.dumps(self._document))
        return copy


def _losses(rows: list[dict[str, Any]]) -> tuple[Loss, ...]:
    return tuple(Loss(row["tensor"], row["what"], row["why"], row["effect"]) for row in rows)


@dataclass(frozen=True, slots=True, repr=False)
class Report(_Document):
    """What was written."""

    path: Path | None
    files: tuple[str, ...]
    tensors: int
    nbytes: int | None
    format: str
    version: str | None
    because: str | None
    losses: tuple[Loss, ...]
    casts: Mapping[str, int] | None
    notes: tuple[str, ...]
    content: str | None
    shared: tuple[tuple[str, ...], ...]
    dry_run: bool
    _document: dict[str, Any] = field(compare=False)

    @classmethod
    def _of(cls, text: str, path: Path | None, output: str, shared: tuple[tuple[str, ...], ...] = (), **more: Any) -> Report:
        document, notes = json.loads(text)
        names = document.pop("files", [])
        base = path if path is not None and path.is_dir() else path.parent if path is not None else None
        files = tuple(str(base / name) if base is not None else name for name in names)
        ordered: dict[str, Any] = {}
        for key, value in document.items():
            ordered[key] = value
            if key == "output":
                ordered["output"] = output
                # The command names them where there are several.
                if len(files) > 1:
                    ordered["files"] = list(files)
        ordered.update(more)
        return cls(
            path=path,
            files=files,
            tensors=document["tensors"],
            nbytes=document["bytes"],
            format=document["format"],
            version=None if document["version"] == "-" else document["version"],
            because=document["because"],
            losses=_losses(document["losses"]),
            casts=document.get("casts"),
            notes=tuple(notes),
            content=document["content"],
            shared=shared,
            dry_run=document["dry_run"],
            _document=ordered,
        )

    def __repr__(self) -> str:
        name = self.path.name if self.path else "bytes"
        size = "nothing written" if self.nbytes is None else _size(self.nbytes)
        lost = f", {_count(len(self.losses), 'loss', 'losses')}" if self.losses else ""
        return f"<Report {name}: {self.format}, {_count(self.tensors, 'tensor')}, {size}{lost}>"


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes of a file that belong to one thing: ``kind`` is ``data``, ``padding``, ``unclaimed``, ``overlap``, or what the
    format calls it, such as ``header``."""

    kind: str
    file: str | None
    offset: int
    nbytes: int
    tensor: str | None
    part: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Inspection(_Document):
    """What is in a file."""

    format: str | None
    version: str | None
    nbytes: int
    elements: int
    dtypes: Mapping[str, int]
    metadata: Mapping[str, Any]
    tensors: tuple[Mapping[str, Any], ...]
    findings: tuple[Finding, ...]
    _archive: Archive = field(compare=False)
    _document: dict[str, Any] = field(compare=False)

    @classmethod
    def _of(cls, text: str, archive: Archive) -> Inspection:
        document = json.loads(text)
        return cls(
            format=document["format"],
            version=document["version"],
            nbytes=document["bytes"],
            elements=document["elements"],
            dtypes=document["dtypes"],
            metadata=document["metadata"],
            tensors=tuple(document.get("tensors", ())),
            findings=archive.findings,
            _archive=archive,
            _document=document,
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        """What every byte of the files belongs to, in order: reads what lies between the data."""
        from ._tenfold import extents

        archive = self._archive
        names = [file.name for file in archive.files]
        tensors = list(archive.values())

        def region(file: int, start: int, end: int, kind: str, data: tuple[int, int] | None) -> Region:
            tensor = None if data is None else tensors[data[0]]
            part = None if data is None or tensor is None else tensor.parts[data[1]].role
            return Region(kind, names[file], start, end - start, None if tensor is None else tensor.name, part)

        return tuple(region(*row) for row in extents(archive))

    def __repr__(self) -> str:
        return f"<Inspection {self.format}: {_count(len(self.tensors), 'tensor')}, {_size(self.nbytes)}>"

    def _repr_html_(self) -> str:
        from ._html import inspection

        return inspection(self)


def _findings(rows: list[dict[str, Any]]) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            row["severity"],
            row["rule"],
            row["tensor"],
            row["file"],
            row["range"][0] if row["range"] else None,
            row["message"],
        )
        for row in rows
    )


@dataclass(frozen=True, slots=True, repr=False)
class Verification(_Document):
    """Whether a file is sound: true in a condition if it is."""

    sound: bool
    format: str | None
    version: str | None
    findings: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    _document: dict[str, Any] = field(compare=False)

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Verification:
        return cls(
            sound=document["sound"],
            format=document["format"],
            version=document["version"],
            findings=_findings(document["findings"]),
            notes=_findings(document["notes"]),
            _document=document,
        )

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that make it unsound."""
        return tuple(found for found in self.findings if found.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The deviations that readers tolerate."""
        return tuple(found for found in self.findings if found.severity == "warning")

    def raise_(self) -> None:
        """Raises :class:`tenfold.FormatError` if it is not sound."""
        if self.sound:
            return
        from ._errors import FormatError

        first = (self.errors or self.findings)[0]
        more = f" (and {len(self.findings) - 1} more)" if len(self.findings) > 1 else ""
        raise FormatError(
            f"{first}{more}",
            kind="malformed",
            rule=first.rule,
            format=self.format,
            tensor=first.tensor,
            path=first.file,
            offset=first.offset,
            message=first.message,
        )

    def __bool__(self) -> bool:
        return self.sound

    def __repr__(self) -> str:
        verdict = "sound" if self.sound else "not sound"
        found = f", {_count(len(self.errors), 'error')}, {_count(len(self.warnings), 'warning')}" if self.findings else ""
        return f"<Verification: {verdict}{found}>"

    def _repr_html_(self) -> str:
        from ._html import verification

        return verification(self)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Digests(_Document, Mapping[str, "str | None"]):
    """What a file holds, as SHA-256: of each tensor by its name (``None`` if it cannot be read), and ``content`` of all."""

    content: str | None
    _sums: dict[str, str | None]
    _document: dict[str, Any]

    @classmethod
    def _of(cls, text: str) -> Digests:
        document = json.loads(text)
        sums = {row["name"]: row["sha256"] for row in document["tensors"]}
        return cls(content=document["content"], _sums=sums, _document=document)

    def __getitem__(self, name: str) -> str | None:
        return self._sums[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sums)

    def __len__(self) -> int:
        return len(self._sums)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Digests):
            return self.content == other.content and self._sums == other._sums
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.content)

    def __repr__(self) -> str:
        return f"<Digests of {len(self._sums)} tensors: {self.content}>"


@dataclass(frozen=True, slots=True)
class Side:
    """A tensor of one of two files that are compared."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A difference: ``kind`` is ``added``, ``removed``, ``renamed``, ``changed`` or ``unreadable``."""

    kind: str
    name: str
    a: Side | None
    b: Side | None
    values: Mapping[str, Any] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """A key whose value is not the same in both files; ``a`` or ``b`` is ``None`` where it is not there."""

    tensor: str | None
    key: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True, repr=False)
class Diff(_Document):
    """What is different between two files: true in a condition if nothing is."""

    equal: bool
    equal_tensors: int
    changes: tuple[Change, ...]
    metadata: tuple[MetadataChange, ...]
    _document: dict[str, Any] = field(compare=False)

    @classmethod
    def _of(cls, text: str) -> Diff:
        document = json.loads(text)

        def side(row: dict[str, Any] | None) -> Side | None:
            return None if row is None else Side(row["name"], row["dtype"], tuple(row["shape"]))

        changes = tuple(
            Change(row["change"], row["name"], side(row["a"]), side(row["b"]), row.get("values"), row.get("error"))
            for row in document["changes"]
        )
        metadata = tuple(MetadataChange(row["tensor"], row["key"], row.get("a"), row.get("b")) for row in document["metadata"])
        return cls(document["equal"], document["equal_tensors"], changes, metadata, document)

    def __bool__(self) -> bool:
        return self.equal

    def __repr__(self) -> str:
        if self.equal:
            return f"<Diff: equal, {self.equal_tensors} tensors>"
        return f"<Diff: {len(self.changes)} tensors and {len(self.metadata)} keys differ, {self.equal_tensors} are equal>"

    def _repr_html_(self) -> str:
        from ._html import diff

        return diff(self)


@dataclass(frozen=True, slots=True)
class Import:
    """A class or function that a pickle would import: ``verdict`` is ``harmless``, ``unknown`` or ``dangerous``."""

    module: str
    name: str
    verdict: str
    could: str | None
    opcode: str
    offset: int
    times: int

    def __str__(self) -> str:
        could = f", which {self.could}" if self.could else ""
        return f"{self.module}.{self.name}{could}"


@dataclass(frozen=True, slots=True)
class Pickle:
    """A pickle in a file: ``fault`` says why it could not be followed to its end."""

    member: str | None
    offset: int
    verdict: str
    imports: tuple[Import, ...]
    fault: str | None


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a file that could hide pickles and was not looked into."""

    member: str | None
    why: str


@dataclass(frozen=True, slots=True, repr=False)
class Scan(_Document):
    """What the pickles in a file would import: true in a condition if all of it is harmless."""

    verdict: str
    pickles: tuple[Pickle, ...]
    unread: tuple[Unread, ...]
    _document: dict[str, Any] = field(compare=False)

    @classmethod
    def _of(cls, text: str) -> Scan:
        document = json.loads(text)

        def imports(rows: list[dict[str, Any]]) -> tuple[Import, ...]:
            keys = ("module", "name", "verdict", "could", "opcode", "at", "times")
            return tuple(Import(*(row[key] for key in keys)) for row in rows)

        pickles = tuple(
            Pickle(row["member"], row["at"], row["verdict"], imports(row["globals"]), row["fault"])
            for row in document["pickles"]
        )
        unread = tuple(Unread(row["member"], row["why"]) for row in document["unread"])
        return cls(document["verdict"], pickles, unread, document)

    @property
    def imports(self) -> tuple[Import, ...]:
        """Everything that the pickles would import."""
        return tuple(found for pickle in self.pickles for found in pickle.imports)

    @property
    def dangerous(self) -> tuple[Import, ...]:
        """The imports that are known to do harm."""
        return tuple(found for found in self.imports if found.verdict == "dangerous")

    def __bool__(self) -> bool:
        return self.verdict == "harmless"

    def __repr__(self) -> str:
        found = f", {_count(len(self.dangerous), 'dangerous import')}" if self.dangerous else ""
        return f"<Scan: {self.verdict}, {_count(len(self.pickles), 'pickle')}{found}>"

    def _repr_html_(self) -> str:
        from ._html import scan

        return scan(self)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many numbers are between each two edges."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stats:
    """What numbers are like. ``min``, ``max``, ``mean`` and ``std`` are of those that are finite."""

    elements: int
    numbers: int
    finite: int
    min: float | int | None
    max: float | int | None
    abs_max: float | int | None
    mean: float | None
    std: float | None
    zeros: int
    nans: int
    positive_infinities: int
    negative_infinities: int
    subnormals: int
    histogram: Histogram | None

    @property
    def infs(self) -> int:
        """Infinities of both signs."""
        return self.positive_infinities + self.negative_infinities

    @classmethod
    def _of(cls, row: dict[str, Any]) -> Stats:
        bins = row.get("histogram")
        return cls(
            elements=row["elements"],
            numbers=row["numbers"],
            finite=row["finite"],
            min=_number(row["min"]),
            max=_number(row["max"]),
            abs_max=_number(row["abs_max"]),
            mean=_number(row["mean"]),
            std=_number(row["std"]),
            zeros=row["zeros"],
            nans=row["nan"],
            positive_infinities=row["positive_infinities"],
            negative_infinities=row["negative_infinities"],
            subnormals=row["subnormals"],
            histogram=None if bins is None else Histogram(tuple(float(edge) for edge in bins["edges"]), tuple(bins["counts"])),
        )

    def _repr_html_(self) -> str:
        from ._html import stats

        return stats(self)


def _number(value: Any) -> Any:
    """A number that JSON has as a text."""
    return float(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ArchiveStats(_Document, Mapping[str, Stats]):
    """What the numbers of a file are like: by the names of the tensors, and of all as ``total``.

    Tensors that cannot be read are in ``errors`` instead.
    """

    total: Stats
    errors: Mapping[str, str]
    _tensors: dict[str, Stats]
    _document: dict[str, Any]

    @classmethod
    def _of(cls, text: str) -> ArchiveStats:
        document = json.loads(text)
        rows = document["tensors"]
        tensors = {row["name"]: Stats._of(row) for row in rows if "error" not in row}
        errors = {row["name"]: row["error"] for row in rows if "error" in row}
        return cls(Stats._of(document["total"]), errors, tensors, document)

    def __getitem__(self, name: str) -> Stats:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ArchiveStats):
            return self.total == other.total and self._tensors == other._tensors
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.total)

    def __repr__(self) -> str:
        return f"<ArchiveStats of {len(self._tensors)} tensors, {self.total.numbers} numbers>"

    def _repr_html_(self) -> str:
        from ._html import archive_stats

        return archive_stats(self)


def _count(count: int, one: str, several: str | None = None) -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"


def _size(nbytes: int) -> str:
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{nbytes} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


# Tracebacks, pickles and help say where users find them.
for _class in list(globals().values()):
    if isinstance(_class, type) and _class.__module__ == __name__:
        _class.__module__ = "tenfold"
