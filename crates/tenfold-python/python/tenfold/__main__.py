"""The command: `tenfold` and `python -m tenfold` are the same program as the one that is built by cargo."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from ._tenfold import command


class _Stopped(BaseException):
    """A signal came."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


def _stop(number: int, _: FrameType | None) -> None:
    raise _Stopped(number)


def main() -> int:
    """Runs the command with the arguments of this process, and gives its exit code."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    _allow_many_files()
    try:
        return command(["tenfold", *sys.argv[1:]])
    except _Stopped as stopped:
        # Before or after the work.
        return 128 + stopped.signal


def _allow_many_files() -> None:
    """A model may be thousands of files."""
    try:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (ImportError, OSError, ValueError):
        pass


if __name__ == "__main__":
    sys.exit(main())
