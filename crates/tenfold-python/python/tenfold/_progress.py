"""How far long work is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ._types import Progress

#: What Rust calls with the bytes that are done and those in all.
Told: TypeAlias = Callable[[int, int], object] | None


class watched:
    """Progress as a function: a bar, a line, or what was given."""

    def __init__(self, progress: Progress) -> None:
        self._given = progress
        self._bar: Any = None

    def __enter__(self) -> Told:
        if self._given is None or self._given is False:
            return None
        if callable(self._given):
            return self._given
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return self._line if sys.stderr.isatty() else None
        self._bar = tqdm(total=0, unit="B", unit_scale=True, unit_divisor=1024)
        return self._update

    def _update(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.n = done
        self._bar.refresh()

    def _line(self, done: int, total: int) -> None:
        sys.stderr.write(f"\r{100 * done // max(1, total)} %")
        sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._given is True and sys.stderr.isatty():
            sys.stderr.write("\r     \r")


def parts(told: Told, total: int) -> Iterator[Told]:
    """What each of several pieces of work is given, so that they count as one."""
    before = 0
    while True:
        if told is None:
            yield None
            continue
        last = 0

        def one(done: int, of: int, before: int = before) -> None:
            nonlocal last
            last = of
            told(before + done, total)

        yield one
        before += last
