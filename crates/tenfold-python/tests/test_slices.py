"""Slices against NumPy's own, for views and for what has to be made."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenfold

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@st.composite
def arrays_and_keys(draw):
    shape = draw(SHAPES)
    dtype = draw(st.sampled_from(["float32", ">f8", "int16", "uint8", "complex64", "bool", "float16"]))
    array = np.arange(int(np.prod(shape)), dtype="float64").astype(dtype).reshape(shape)
    order = draw(st.sampled_from("CF"))
    array = np.asarray(array, order=order)
    key = draw(hnp.basic_indices(shape, max_dims=8, allow_newaxis=True, allow_ellipsis=True))
    return array, key


def same(found, wanted) -> None:
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.dtype.newbyteorder("=") == wanted.dtype.newbyteorder("=")
    assert (found == wanted).all()


@settings(max_examples=300, deadline=None)
@given(case=arrays_and_keys(), how=st.sampled_from(["mapped", "read", "zstd"]))
def test_slices_are_those_of_numpy(case, how: str) -> None:
    array, key = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.zt"
        tenfold.save(path, {"a": array}, zstd=3 if how == "zstd" else None, sync=False)
        tensor = tenfold.open(path, mmap=how != "read")["a"]
        same(tensor.numpy(), array)
        same(tensor[key], array[key])
        assert np.isscalar(tensor[key]) == np.isscalar(array[key]) or how != "mapped"
        if not any(part is None for part in (key if isinstance(key, tuple) else (key,))):
            wanted = np.ascontiguousarray(array[key])
            out = np.empty(wanted.shape, wanted.dtype.newbyteorder("<") if wanted.dtype.itemsize > 1 else wanted.dtype)
            tensor.read_into(out, key)
            assert (out == wanted).all()


@pytest.fixture(params=["view", "made"])
def tensor(request: pytest.FixtureRequest, tmp_path: Path) -> tenfold.Tensor:
    path = tmp_path / "a.zt"
    tenfold.save(path, {"a": np.arange(24).reshape(4, 6)}, zstd=1 if request.param == "made" else None)
    return tenfold.open(path)["a"]


def test_what_numpy_would_refuse(tensor) -> None:
    for key in (4, (0, 6), -5, (0, 0, 0), 10**30):
        with pytest.raises(IndexError):
            tensor[key]
    for key in ([0, 1], np.array([0]), True, "a", 1.5, np.array([True] * 4)):
        with pytest.raises(IndexError, match=r"tensor\.numpy\(\)"):
            tensor[key]
    with pytest.raises(IndexError, match="ellipsis"):
        tensor[..., ...]
    with pytest.raises(ValueError, match="zero"):
        tensor[::0]
    assert (tensor[np.int64(1)] == np.arange(6, 12)).all()
    assert (tensor[: 10**30] == tensor.numpy()).all()
    assert isinstance(tensor[1, 2], np.int64) and tensor[1, 2] == 8
    assert len(list(tensor)) == 4


def test_memory_that_is_filled_must_fit(tensor) -> None:
    with pytest.raises(ValueError, match="191 bytes"):
        tensor.read_into(bytearray(191))
    with pytest.raises(ValueError, match="read-only"):
        tensor.read_into(bytes(192))
    with pytest.raises(ValueError, match="contiguous"):
        tensor.read_into(np.zeros((4, 12), "int64")[:, ::2])
    out = bytearray(192)
    tensor.read_into(out)
    assert bytes(out) == tensor.tobytes()


@settings(max_examples=60, deadline=None)
@given(shape=SHAPES, nbytes=st.integers(1, 200), how=st.sampled_from(["view", "made"]))
def test_chunks_are_all_of_it(shape, nbytes, how) -> None:
    array = np.arange(int(np.prod(shape)), dtype="int32").reshape(shape)
    data = tenfold.dumps({"a": array}, format="ztensor", zstd=1 if how == "made" else None)
    tensor = tenfold.open(data)["a"]
    pieces = list(tensor.chunks(nbytes))
    assert all(piece.ndim == 1 and piece.nbytes <= max(4, nbytes) for piece in pieces)
    found = np.concatenate(pieces) if pieces else np.zeros(0, "int32")
    assert (found == array.reshape(-1)).all() and found.size == array.size
