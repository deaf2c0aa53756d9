"""Files that were changed at random, opened and read in this process: exceptions, and never the end of the interpreter."""

from __future__ import annotations

import os
import random
import warnings
from pathlib import Path

import pytest
from conftest import FIXTURES

import tenfold

#: 10 000 in the full run.
FILES = int(os.environ.get("TENFOLD_MUTATED", "1500"))
LIMITS = tenfold.Limits(header_bytes=1 << 24, tensor_memory=1 << 24, dense_bytes=1 << 24)
LONGEST = 200_000


def sources() -> list[Path]:
    found = [path for path in sorted(FIXTURES.glob("*/*/*")) if path.is_file() and path.suffix != ".json"]
    return [path for path in found if 0 < path.stat().st_size < LONGEST]


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


def use(archive: tenfold.Archive) -> int:
    """Everything that a user would do with it."""
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
        if tensor.nbytes > 1 << 24:
            continue
        for read in (
            lambda tensor=tensor: tensor.numpy(),
            lambda tensor=tensor: tensor.tobytes(),
            lambda tensor=tensor: tensor[..., -1:] if tensor.ndim else tensor[...],
            lambda tensor=tensor: bytes(tensor.data),
            lambda tensor=tensor: tensor.__dlpack__(max_version=(1, 0)),
        ):
            try:
                read()
            # NumPy has no shapes of more than 64 dimensions or beyond its memory.
            except (tenfold.Error, OSError, MemoryError, BufferError, ValueError, IndexError, OverflowError):
                raised += 1
    return raised


def test_changed_files_raise_and_nothing_else() -> None:
    paths = sources()
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
            raised += use(archive)
    assert opened > FILES // 20 and raised > FILES // 20


def test_a_file_that_shrinks_is_an_error_without_mapping(mixed: Path) -> None:
    archive = tenfold.open(mixed, mmap=False)
    with open(mixed, "r+b") as file:
        file.truncate(100)
    with pytest.raises((tenfold.Error, OSError)):
        archive["a.weight"].numpy()
