"""File objects: few reads, ranges at once."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

import tenfold


class Counted:
    """What a file system was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.ranges: list[tuple[int, int]] = []
        self.opened: list[tuple[int, int]] = []


def far_away(counted: Counted) -> Any:
    """A file system of fsspec that fetches ranges at once, as those behind a network do."""
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractBufferedFile

    class Object(AbstractBufferedFile):
        def _fetch_range(self, start: int, end: int) -> bytes:
            counted.opened.append((start, end))
            return counted.files[self.path][start:end]

    class FarAway(AsyncFileSystem):
        cachable = False

        async def _info(self, path: str, **_: object) -> dict[str, object]:
            return {"name": path, "size": len(counted.files[path]), "type": "file"}

        async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: object) -> bytes:
            counted.ranges.append((start or 0, end or 0))
            return counted.files[path][start:end]

        def _open(self, path: str, mode: str = "rb", **options: object) -> Object:
            return Object(self, path, mode, **options)

    return FarAway()


def test_files_of_fsspec_are_read_by_ranges(mixed: Path) -> None:
    counted = Counted()
    counted.files["model"] = mixed.read_bytes()
    system = far_away(counted)
    with system.open("model") as file:
        archive = tenfold.open(file)
        # The file is small: all of it is among its first bytes.
        assert len(counted.ranges) == 1 and not counted.opened
        for name, tensor in tenfold.open(mixed).items():
            np.testing.assert_array_equal(archive[name].numpy(), tensor.numpy())
        assert tenfold.digest(archive) == tenfold.digest(mixed)
    counted.ranges.clear()
    big = {f"t{n}": np.full(1 << 20, n, "float32") for n in range(4)}
    counted.files["big"] = tenfold.dumps(big, format="safetensors")
    with system.open("big") as file:
        archive = tenfold.open(file)
        assert len(counted.ranges) <= 2, counted.ranges
        loaded = tenfold.load(archive)
        assert all((loaded[name] == array).all() for name, array in big.items())
        assert not counted.opened


def test_a_server_that_ignores_ranges_is_read_otherwise() -> None:
    counted = Counted()
    counted.files["model"] = tenfold.dumps({"a": np.ones(1 << 20)}, format="safetensors")
    system = far_away(counted)

    async def whole(*_: object, **__: object) -> bytes:
        return counted.files["model"]

    system._cat_file = whole
    with system.open("model") as file:
        assert (tenfold.open(file)["a"][1000:1010] == 1).all()
    assert counted.opened


def test_opening_a_file_object_takes_few_reads(tmp_path: Path) -> None:
    path = tmp_path / "big.safetensors"
    tenfold.save(path, {f"t{n}": np.full(1 << 20, n, "float32") for n in range(4)}, sync=False)
    read: list[int] = []

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            read.append(size or 0)
            return super().read(size)

    file = Slow(path.read_bytes())
    archive = tenfold.open(file)
    assert len(read) <= 2, read
    read.clear()
    assert archive["t3"][5] == 3 and sum(read) < 1 << 20
    where = file.seek(7)
    assert tenfold.is_tensor_file(file) == "safetensors" and file.tell() == where
