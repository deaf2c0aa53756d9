"""What users write, for the type checkers. It is not run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import tenfold


def reading(path: str | os.PathLike[str]) -> None:
    with tenfold.open(path, strict=True, limits=tenfold.Limits(rank=8)) as archive:
        assert_type(archive, tenfold.Archive)
        mapping: Mapping[str, tenfold.Tensor] = archive
        for name, tensor in archive.items():
            assert_type(name, str)
            assert_type(tensor.numpy(), NDArray[Any])
            assert_type(tensor[1:, ..., None, -1], NDArray[Any])
            assert_type(tensor.shape, tuple[int, ...])
            assert_type(tensor.dtype, tenfold.DType)
        assert_type(mapping["a"], tenfold.Tensor)
        assert_type(archive.get("a"), tenfold.Tensor | None)
        assert_type(archive.numpy(), dict[str, NDArray[Any]])
        assert_type(archive.version, str | None)
    assert_type(tenfold.load(path), dict[str, NDArray[Any]])
    assert_type(tenfold.load(path, framework="numpy", copy=True), dict[str, NDArray[Any]])
    assert_type(tenfold.open(path, opaque=True, options={"constants": "true"}), tenfold.Archive)
    assert_type(tenfold.loads(b"bytes"), dict[str, NDArray[Any]])
    assert_type(tenfold.loads(b"bytes", framework="np", limits=tenfold.Limits()), dict[str, NDArray[Any]])
    numbers = tenfold.open(path, dequantize=True)
    assert_type(numbers.select("*.weight", where=lambda tensor: tensor.ndim == 2), tenfold.Archive)
    assert_type(numbers["a"].blocks(), NDArray[np.uint8])
    matrix: Any = numbers["a"].scipy()
    assert_type(numbers["a"].stats(bins=4), tenfold.Stats)
    assert_type(tenfold.load_model(matrix, path, limits=tenfold.Limits()), tuple[list[str], list[str]])
    scan = tenfold.scan(path, limits=tenfold.Limits(depth=8))
    assert_type(scan, tenfold.Scan)
    assert_type(scan.pickles[0].imports[0].could, str | None)
    assert_type(tenfold.is_tensor_file(b"bytes"), str | None)


def writing(path: str) -> None:
    report = tenfold.save(path, {"a": np.zeros(3)}, metadata={"n": 1}, cast={"*": np.float32}, shard_size="5GB")
    assert_type(report, tenfold.Report)
    assert_type(report.losses, tuple[tenfold.Loss, ...])
    assert_type(tenfold.dumps([("a", np.zeros(3))], format="npz"), bytes)
    with tenfold.Writer(path) as writer:
        writer["a"] = np.zeros(3)
        writer.stream("b", "float32", (None, 3)).write(np.zeros((2, 3), np.float32))
    tenfold.save(path, {"lazy": tenfold.Lazy("bfloat16", (2,), lambda: np.zeros(2))})


def working(path: str) -> None:
    assert_type(tenfold.verify(path).errors, tuple[tenfold.Finding, ...])
    assert_type(tenfold.digest(path, dequantize=True)["a"], str | None)
    assert_type(tenfold.diff(path, path).equal, bool)
    assert_type(tenfold.stats(path, dequantize=True)["a"], tenfold.Stats)
    assert_type(tenfold.rename(path, "b.zt", rules={"a": "b"}, zstd=3).files, tuple[str, ...])
    assert_type(tenfold.extract(path, "b.zt", ["a"]), tenfold.Report)
    assert_type(tenfold.merge([path, path], "b.zt", prefer="first"), tenfold.Report)
    assert_type(tenfold.split(path, "parts", by="layers"), tenfold.Report)
    assert_type(tenfold.edit_metadata(path, set={"a": 1}), tenfold.Report)
    assert_type(tenfold.convert(path, "b.zt", progress=lambda done, total: None).format, str)
    assert_type(tenfold.inspect(path).to_dict(), dict[str, Any])
    try:
        tenfold.open(path)
    except tenfold.LimitError as error:
        assert_type(error.limit, str | None)
    except tenfold.Error as error:
        assert_type(error.rule, str | None)
