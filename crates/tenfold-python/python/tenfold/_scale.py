"""Work for many machines: a plan, its items, and what they come to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _tenfold
from ._errors import ArgumentError, Error
from ._results import ArchiveStats, Diff, Digests, Verification


@dataclass(frozen=True)
class Converted:
    """What the items of a conversion wrote: where, how many bytes, and why inputs of a tree were not converted."""

    path: Path
    nbytes: int
    failed: tuple[Error, ...]


Found = Digests | ArchiveStats | Verification
Joined = Converted | Diff | Found | list[Found | Error]


class Plan:
    """Work that is cut into items, each of which any process on any machine can do, any number of times.

    A plan is made by `plan`, or read by `open_plan`. It can be pickled and sent anywhere, and holds nothing secret: every
    machine takes its credentials from its own environment.

    >>> import tenfold
    >>> path = "fixtures/safetensors/valid/scalars.safetensors"
    >>> plan = tenfold.plan("digest", path, items=4, state="target/state")
    >>> done = [plan.run(item) for item in range(len(plan.items))]
    >>> plan.join(tidy=True) == tenfold.digest(path)
    True
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._plan: dict[str, Any] = json.loads(text)

    @property
    def id(self) -> str:
        """SHA-256 of all that the plan says."""
        return str(self._plan["id"])

    @property
    def verb(self) -> str:
        """What is done: ``"convert"``, ``"digest"``, ``"verify"``, ``"stats"`` or ``"diff"``."""
        return str(self._plan["verb"])

    @property
    def state(self) -> str:
        """Where receipts are kept."""
        return str(self._plan["state"])

    @property
    def items(self) -> list[dict[str, Any]]:
        """What there is to do, as plain dictionaries."""
        return list(self._plan["items"])

    @property
    def missing(self) -> list[int]:
        """The items that are not done."""
        return _tenfold.plan_status(self._text)[0]

    def run(self, item: int, *, again: bool = False, threads: int = 0) -> str:
        """Does an item, unless it is done.

        Gives ``"done"``, ``"found"`` where something is not sound, ``"before"`` where it was done before, or ``"joined"``.
        """
        return _tenfold.run_item(self._text, item, again, threads)

    def join(self, *, check: bool = False, force: bool = False, tidy: bool = False, threads: int = 0) -> Joined:
        """Puts together what the items came to, and makes it visible: what one process would have written, or found.

        A report about one input is what `digest`, `verify`, `stats` or `diff` gives, about several a list of these, in which an
        `Error` stands for an input that could not be read; of an only input it is raised. `check` reads back what was written.
        """
        found: list[Any] = []
        written: tuple[str, int] | None = None
        for kind, what in _tenfold.join_plan(self._text, check, force, tidy, threads):
            if kind == "convert":
                written = what
            elif kind == "digest":
                found.append(Digests._of(what))
            elif kind == "verify":
                found.append(Verification._of(json.loads(what)))
            elif kind == "stats":
                found.append(ArchiveStats._of(what))
            elif kind == "diff":
                found.append(Diff._of(what))
            else:
                found.append(what)
        if written is not None:
            return Converted(Path(written[0]), written[1], tuple(found))
        if len(found) != 1:
            return found
        if isinstance(found[0], Error):
            raise found[0]
        only: Joined = found[0]
        return only

    def abandon(self) -> None:
        """Gives the plan up: removes what its items left."""
        _tenfold.abandon_plan(self._text)

    def to_json(self) -> str:
        """The plan as the text that `tenfold run` and `tenfold join` read."""
        return self._text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan to a new file."""
        with open(path, "x", encoding="utf-8") as file:
            file.write(self._text)

    def __reduce__(self) -> tuple[type[Plan], tuple[str]]:
        return Plan, (self._text,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"<tenfold.Plan {self.verb}, {len(self.items)} items, {self.id[:12]}>"


def plan(
    verb: str,
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    items: int | None = None,
    item_size: int | None = None,
    state: str | os.PathLike[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Plan:
    """Cuts work into items that many machines do. Reads headers.

    Parameters
    ----------
    verb : str
        ``"convert"``, ``"digest"``, ``"verify"``, ``"stats"`` or ``"diff"``.
    inputs : path, URL or list of them
        Files, models, trees of models or prefixes in stores.
    output : path, optional
        What a conversion writes.
    items, item_size : int
        How many items there are, or about how many bytes each has.
    state : path, optional
        Where receipts are kept, which all machines see; by default beside the output.
    options : mapping, optional
        How it is done, with the names that the options of the command have, and underscores: ``{"to": "gguf", "cast":
        [["f16", None]]}``.
    """
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    if (items is None) == (item_size is None):
        raise ArgumentError("a plan has items or item_size")
    given = [os.fspath(path) for path in inputs]
    place = None if output is None else os.fspath(output)
    base = None if state is None else os.fspath(state)
    return Plan(_tenfold.plan(verb, given, place, json.dumps(dict(options or {})), items, item_size, base))


def open_plan(path: str | os.PathLike[str]) -> Plan:
    """Reads a plan that `tenfold plan` or `Plan.save` wrote."""
    with open(path, encoding="utf-8") as file:
        return Plan(file.read())
