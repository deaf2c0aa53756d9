"""Exceptions and warnings. Rust makes them from the library's errors by `from_library`."""

from __future__ import annotations

import difflib
import errno as _errno
import os
from typing import Any


class Error(Exception):
    """Something is wrong with a file, or with what was asked for.

    Attributes
    ----------
    kind : str
        Who must act: ``"malformed"``, ``"limit"``, ``"argument"`` and so on.
    rule : str or None
        The rule that was broken, as ``format.topic``; each format's page lists them.
    format, tensor, path : str or None
        What it is about.
    offset, length : int or None
        The bytes of the file that it is about.
    message : str
        What was found and what was expected, without place and rule.
    hint : str or None
        What would help, in terms of this package's arguments.
    """

    def __init__(self, text: str = "", **facts: Any) -> None:
        super().__init__(text)
        self.kind: str = facts.get("kind", "argument")
        self.rule: str | None = facts.get("rule")
        self.format: str | None = facts.get("format")
        self.tensor: str | None = facts.get("tensor")
        self.path: str | None = facts.get("path")
        self.offset: int | None = facts.get("offset")
        self.length: int | None = facts.get("length")
        self.message: str = facts.get("message", text)
        self.hint: str | None = facts.get("hint")
        self._facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (type(self), str(self), self._facts))


class ArgumentError(Error, ValueError):
    """What was asked for makes no sense."""


class FormatError(Error, ValueError):
    """The file breaks a rule of its format."""


class UnrecognizedError(FormatError):
    """The file is of no format known here."""


class CorruptError(FormatError):
    """The file's parts contradict each other: a checksum, a digest, a changed length."""


class UnsupportedError(Error, NotImplementedError):
    """The content is legal, but this package cannot handle it."""


class LimitError(Error):
    """A limit was reached; ``limit`` is the field of :class:`tenfold.Limits` that raises it."""

    def __init__(self, text: str = "", **facts: Any) -> None:
        super().__init__(text, **facts)
        self.limit: str | None = facts.get("limit")


class LossError(Error):
    """Writing would lose something that was not allowed to be lost; ``losses`` lists it."""

    def __init__(self, text: str = "", **facts: Any) -> None:
        super().__init__(text, **facts)
        from ._results import Loss

        self.losses: tuple[Loss, ...] = tuple(Loss(*row) for row in facts.get("losses", ()))


class CanceledError(Error):
    """The work was stopped on request."""


class SecurityError(Error):
    """The file asks for something that is never done, such as running code."""


class FormatWarning(UserWarning):
    """A file deviates from its format in a way that readers tolerate."""


class SharedTensorWarning(UserWarning):
    """Tensors that share memory were written as separate copies."""


_KINDS: dict[str, type[Error]] = {
    "argument": ArgumentError,
    "canceled": CanceledError,
    "limit": LimitError,
    "lossy": LossError,
    "malformed": FormatError,
    "mismatch": CorruptError,
    "unrecognized": UnrecognizedError,
    "unsupported": UnsupportedError,
}


def _again(kind: type[Error], text: str, facts: dict[str, Any]) -> Error:
    return kind(text, **facts)


def from_library(facts: dict[str, Any]) -> BaseException:
    """The exception for an error of the library."""
    hints: list[str] = facts.pop("hints")
    text: str = facts.pop("text")
    code: int | None = facts.pop("errno")
    is_plain: bool = facts.pop("is_plain")
    facts["hint"] = "; ".join(hints) or None
    path = facts["path"] = None if facts["path"] is None else os.fspath(facts["path"])
    kind: str = facts["kind"]
    if facts.pop("is_directory"):
        code = _errno.EISDIR
    if facts.pop("exists"):
        kind, code = "io", _errno.EEXIST
    if kind in ("io", "not-found"):
        code = code if code is not None else _errno.ENOENT if kind == "not-found" else _errno.EIO
        # Servers say more than the system does.
        is_local = path is not None and "://" not in path
        error: BaseException = OSError(code, os.strerror(code) if is_local else facts["message"], path)
        error.add_note(f"{facts['message']} [{facts['rule']}]")
        return error
    if is_plain:
        text = facts["message"]
    if path is not None:
        text = f"{path}: {text}"
    made = _KINDS.get(kind, Error)(text, **facts)
    if facts["hint"]:
        made.add_note(facts["hint"])
    return made


def near(name: str, names: list[str]) -> str:
    """What to say about a name that is not there."""
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    said = " or ".join(repr(other) for other in close)
    return f"there is no tensor {name!r}" + (f"; did you mean {said}?" if close else "")


# Tracebacks, pickles and help say where users find them.
for _class in list(globals().values()):
    if isinstance(_class, type) and _class.__module__ == __name__:
        _class.__module__ = "tenfold"
