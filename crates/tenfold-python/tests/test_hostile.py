"""Files that were changed at random, opened and read in this process: exceptions, and never the end of the interpreter."""

from __future__ import annotations

import json
import os
import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import FIXTURES

import tenfold

#: 10 000 in the full run.
FILES = int(os.environ.get("TENFOLD_MUTATED", "1500"))
LIMITS = tenfold.Limits(header_bytes=1 << 24, tensor_memory=1 << 24, dense_bytes=1 << 24)
LONGEST = 200_000


def sources() -> tuple[list[Path], list[Path]]:
    """Files, and directories that are models, stores or checkpoints."""
    found = sorted(FIXTURES.glob("*/*/*"))
    files = [path for path in found if path.is_file() and path.suffix != ".json"]
    return [path for path in files if 0 < path.stat().st_size < LONGEST], [path for path in found if path.is_dir()]


def changed(data: bytes, rng: random.Random) -> bytes:
    mutable = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        what = rng.randrange(5)
        at = rng.randrange(len(mutable) + 1)
        # Headers are more interesting than numbers.
        if rng.random() < 0.6:
            at = min(at, rng.randrange(512))
        if what == 0 and mutable:
            mutable[at % len(mutable)] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif what == 1:
            mutable[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif what == 2:
            del mutable[at : at + rng.randrange(1, 64)]
        elif what == 3 and len(mutable) > 8:
            at %= len(mutable) - 8
            mutable[at : at + 8] = rng.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]).to_bytes(
                8, rng.choice(["little", "big"])
            )
        else:
            other = rng.randrange(len(mutable) + 1)
            mutable[at : at + 16] = mutable[other : other + 16]
    return bytes(mutable)


def use(archive: tenfold.Archive, stored: int) -> int:
    """Everything that a user would do with it, of which nothing takes much more memory than there are bytes in its files."""
    # Elements of a bit each have a byte each.
    most = max(LIMITS.tensor_memory, 8 * stored)
    raised = 0
    repr(archive), archive.tree(), archive._repr_html_(), archive.findings, archive.files
    for attempt in (
        lambda: archive.metadata.to_dict(),
        lambda: repr(archive.metadata),
        lambda: tenfold.verify(archive),
        lambda: tenfold.inspect(archive).regions,
    ):
        try:
            attempt()
        except (tenfold.Error, OSError, MemoryError):
            raised += 1
    for tensor in list(archive.values())[:20]:
        repr(tensor), tensor.parts, tensor.defect, tensor._repr_html_()
        for read in (
            lambda tensor=tensor: tensor.numpy().nbytes,
            lambda tensor=tensor: tensor.numpy(copy=True).nbytes,
            lambda tensor=tensor: len(tensor.tobytes()),
            lambda tensor=tensor: tensor[..., -1:].nbytes if tensor.ndim else tensor[...].nbytes,
            lambda tensor=tensor: len(bytes(tensor.data)),
            lambda tensor=tensor: tensor.__dlpack__(max_version=(1, 0)) and 0,
        ):
            try:
                assert read() <= most
            # NumPy has no shapes of more than 64 dimensions or beyond its memory.
            except (tenfold.Error, OSError, MemoryError, BufferError, ValueError, IndexError, OverflowError):
                raised += 1
    return raised


def test_changed_files_raise_and_nothing_else() -> None:
    paths, _ = sources()
    assert len(paths) > 500
    rng = random.Random(20_26)
    opened = raised = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tenfold.FormatWarning)
        for _ in range(FILES):
            path = rng.choice(paths)
            data = changed(path.read_bytes(), rng)
            options = {"limits": LIMITS, "salvage": rng.random() < 0.3, "checksums": rng.random() < 0.5}
            if rng.random() < 0.3:
                options["format"] = path.parent.parent.name
            tenfold.is_tensor_file(data)
            if rng.random() < 0.1:
                repr(tenfold.scan(data, limits=LIMITS))
            try:
                archive = tenfold.open(data, **options)
            except (tenfold.Error, OSError):
                raised += 1
                continue
            opened += 1
            raised += use(archive, len(data))
    assert opened > FILES // 20 and raised > FILES // 20


def test_changed_directories_raise_and_nothing_else(tmp_path: Path) -> None:
    _, folders = sources()
    assert len(folders) > 100
    rng = random.Random(20_27)
    opened = raised = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tenfold.FormatWarning)
        for number in range(max(1, FILES // 10)):
            folder = tmp_path / str(number)
            shutil.copytree(rng.choice(folders), folder)
            files = [path for path in sorted(folder.rglob("*")) if path.is_file() and 0 < path.stat().st_size < LONGEST]
            for path in rng.sample(files, min(len(files), rng.choice([1, 1, 2]))):
                path.write_bytes(changed(path.read_bytes(), rng))
            # By mapping it too: what is in the file is there.
            options = {"limits": LIMITS, "salvage": rng.random() < 0.3, "mmap": rng.random() < 0.5}
            stored = sum(path.stat().st_size for path in files)
            try:
                archive = tenfold.open(folder, **options)
                opened += 1
                raised += use(archive, stored)
            except (tenfold.Error, OSError):
                raised += 1
            shutil.rmtree(folder)
    assert opened > FILES // 200 and raised > FILES // 200


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_what_few_bytes_stand_for_has_a_limit(framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework)
    store = tmp_path / "fill.zarr"
    store.mkdir()
    array = {"zarr_format": 2, "shape": [1 << 40], "chunks": [1 << 20], "dtype": "<f4", "compressor": None}
    (store / ".zarray").write_text(json.dumps(array | {"fill_value": 1, "order": "C", "filters": None}))
    archive = tenfold.open(store)
    (tensor,) = archive.values()
    reads = [lambda: getattr(tensor, framework)(copy=True), lambda: getattr(tensor, framework)()]
    reads += [lambda: tenfold.load(store, framework=framework, copy=copy) for copy in (None, True)]
    for read in reads:
        with pytest.raises(tenfold.LimitError) as caught:
            read()
        assert caught.value.limit in ("dense_bytes", "tensor_memory") and "tenfold.Limits(" in caught.value.hint
    assert tensor[5:8].tolist() == [1, 1, 1]
    # Compressed, and many times longer than the file.
    data = tenfold.dumps({"w": np.zeros(1 << 20)}, format="ztensor", zstd=19)
    assert len(data) < 1 << 16
    few = tenfold.open(data, limits=tenfold.Limits(tensor_memory=1 << 20))
    for read in (lambda: getattr(few["w"], framework)(), lambda: getattr(few, framework)(copy=True)):
        with pytest.raises(tenfold.LimitError, match="tensor_memory"):
            read()
    assert len(tenfold.load(data, framework=framework)["w"]) == 1 << 20


def test_a_file_that_shrinks_is_an_error_without_mapping(mixed: Path) -> None:
    archive = tenfold.open(mixed, mmap=False)
    with open(mixed, "r+b") as file:
        file.truncate(100)
    with pytest.raises((tenfold.Error, OSError)):
        archive["a.weight"].numpy()
