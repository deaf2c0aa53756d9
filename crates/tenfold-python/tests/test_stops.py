"""Long work ends where it is when it is stopped, and leaves nothing behind: counted in reads, never in seconds."""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tenfold

MIB = 1 << 20
#: Threads that the work is done by: each may be in the middle of a read when it is stopped.
THREADS = 2


class Slow(io.RawIOBase):
    """A large file that is nowhere: every read of its data takes a while and is counted."""

    def __init__(self, nbytes: int = 64 * MIB, wait: float = 0.005) -> None:
        tensors = {"t": {"dtype": "F32", "shape": [nbytes // 4096, 1024], "data_offsets": [0, nbytes]}}
        header = json.dumps(tensors).encode()
        self.header = struct.pack("<Q", len(header)) + header
        self.length = len(self.header) + nbytes
        self.place = 0
        self.wait = wait
        self.reads = 0
        self.interrupts_at = -1

    def seek(self, place: int, whence: int = 0) -> int:
        self.place = place + (self.length if whence == 2 else 0)
        return self.place

    def tell(self) -> int:
        return self.place

    def read(self, size: int = -1) -> bytes:
        start, end = self.place, min(self.length, self.place + size)
        self.place = end
        if start >= len(self.header):
            self.reads += 1
            if self.reads == self.interrupts_at:
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(self.wait)
        return self.header[start:end] + bytes(end - max(start, len(self.header)) if end > len(self.header) else 0)


class Stop(Exception):
    pass


Work = Callable[[Slow, Path, Callable[[int, int], object]], object]

WATCHED: dict[str, Work] = {
    "convert": lambda file, path, told: tenfold.convert(file, path / "a.zt", progress=told, threads=THREADS),
    "convert, compressing": lambda file, path, told: tenfold.convert(
        file, path / "a.zt", zstd=22, progress=told, threads=THREADS
    ),
    "convert, casting": lambda file, path, told: tenfold.convert(
        file, path / "a.npz", cast="float16", progress=told, threads=THREADS
    ),
    "convert, quantizing": lambda file, path, told: tenfold.convert(
        file, path / "a.gguf", quantize="Q8_0", progress=told, threads=THREADS
    ),
    "digest": lambda file, path, told: tenfold.digest(file, progress=told, threads=THREADS),
    "diff": lambda file, path, told: tenfold.diff(file, Slow(), progress=told, threads=THREADS),
    "edit_metadata": lambda file, path, told: tenfold.edit_metadata(
        file, path / "a.safetensors", set={"a": "b"}, progress=told, threads=THREADS
    ),
    "extract": lambda file, path, told: tenfold.extract(file, path / "a.zt", progress=told, threads=THREADS),
    "load": lambda file, path, told: tenfold.load(file, copy=True, progress=told, threads=THREADS),
    "merge": lambda file, path, told: tenfold.merge([file], path / "a.zt", progress=told, threads=THREADS),
    "rename": lambda file, path, told: tenfold.rename(file, path / "a.zt", rules={"t": "u"}, progress=told, threads=THREADS),
    "save": lambda file, path, told: tenfold.save(path / "a.zt", tenfold.open(file), progress=told, threads=THREADS),
    "dumps": lambda file, path, told: tenfold.dumps(tenfold.open(file), format="zt", progress=told, threads=THREADS),
    "split": lambda file, path, told: tenfold.split(file, path / "parts", by=1, progress=told, threads=THREADS),
    "stats": lambda file, path, told: tenfold.stats(file, progress=told, threads=THREADS),
    "verify": lambda file, path, told: tenfold.verify(file, content=True, progress=told, threads=THREADS),
}


@pytest.mark.parametrize("what", WATCHED)
def test_what_the_callback_raises_stops_the_work(what: str, tmp_path: Path) -> None:
    file = Slow()
    read_before: list[int] = []

    def told(done: int, total: int) -> None:
        if file.reads > 2:
            read_before.append(file.reads)
            raise Stop

    with pytest.raises(Stop):
        WATCHED[what](file, tmp_path, told)
    assert len(read_before) == 1, "it is asked no more"
    assert file.reads <= read_before[0] + THREADS, f"{file.reads} reads, {read_before[0]} before the stop"
    assert not list(tmp_path.iterdir())


UNWATCHED: dict[str, Callable[[tenfold.Archive], object]] = {
    "chunks": lambda archive: list(archive["t"].chunks()),
    "digest": lambda archive: archive["t"].digest(),
    "numpy": lambda archive: archive["t"].numpy(),
    "numpy, casting": lambda archive: archive["t"].numpy("float64"),
    "read_into": lambda archive: archive["t"].read_into(bytearray(64 * MIB)),
    "slice": lambda archive: archive["t"][::2],
    "stats": lambda archive: archive["t"].stats(),
    "tobytes": lambda archive: archive["t"].tobytes(),
}


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize("what", UNWATCHED)
def test_an_interrupt_stops_reading(what: str) -> None:
    file = Slow(wait=0.01)
    archive = tenfold.open(file)
    # Where formats are told by what is far behind, that was looked at.
    file.reads, file.interrupts_at = 0, 3
    with pytest.raises(KeyboardInterrupt):
        UNWATCHED[what](archive)
    # The main thread looks for signals again and again, and each read takes some of that time.
    assert 3 <= file.reads < 40, f"{file.reads} of 64 reads"


def test_work_that_was_stopped_ends_its_threads(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(Stop):
        WATCHED["convert"](Slow(), tmp_path, lambda done, total: (_ for _ in ()).throw(Stop))
    assert threading.active_count() == before
