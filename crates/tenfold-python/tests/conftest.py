"""What the tests share. They run from the root of the repository."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "fixtures"


def golden(kind: str) -> Iterator[tuple[str, Path, dict]]:
    """The golden files: what each is called, its path, and what is expected of it."""
    for document in sorted(FIXTURES.glob(f"*/{kind}/*.json")):
        if document.name.endswith(".index.json"):
            continue
        expected = json.loads(document.read_text())
        if "tenfold_raw" in expected:
            # It describes a plain dump, and is part of the file.
            continue
        folder = document.parent
        name = expected.get("open") or expected.get("file")
        candidates = [folder / name] if name else []
        candidates += [path for path in sorted(folder.glob(f"{document.stem}.*")) if path != document]
        candidates += [folder / document.stem]
        path = next((path for path in candidates if path.exists()), None)
        assert path is not None, f"no file for {document}"
        yield f"{folder.parent.name}/{document.stem}", path, expected


@pytest.fixture(autouse=True)
def in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Shells that start a program in the background let it ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A small file with several types."""
    import numpy as np

    import tenfold

    path = tmp_path / "mixed.safetensors"
    rng = np.random.default_rng(7)
    tensors = {
        "a.weight": rng.standard_normal((5, 7)).astype("float32"),
        "a.bias": np.arange(7, dtype="int64"),
        "half": rng.standard_normal((2, 3, 4)).astype("float16"),
        "scalar": np.float64(2.5),
        "empty": np.zeros((0, 3), "float32"),
        "flag": np.array([True, False, True]),
    }
    tenfold.save(path, tensors, metadata={"by": "me"})
    return path
