"""Saving and loading."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenfold
from tenfold._inputs import build

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"]
DTYPES += ["complex64", ">f4", ">i8", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


@st.composite
def arrays(draw):
    dtype = dtype_of(draw(st.sampled_from(DTYPES)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    count = int(np.prod(shape)) * dtype.itemsize
    raw = np.frombuffer(draw(st.binary(min_size=count, max_size=count)), np.uint8)
    if dtype == np.bool_:
        raw = raw & 1
    array = raw.copy().view(dtype).reshape(shape)
    how = draw(st.sampled_from(["C", "F", "reversed", "strided"]))
    if how == "F":
        array = np.asfortranarray(array).reshape(shape, order="A") if shape else array
    elif how == "reversed" and array.ndim:
        array = array[::-1]
    elif how == "strided" and array.ndim:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    return array


@settings(max_examples=200, deadline=None)
@given(
    tensors=st.dictionaries(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8), arrays(), max_size=4)
)
@pytest.mark.parametrize("format", ["safetensors", "ztensor"])
def test_what_is_saved_is_loaded(format: str, tensors: dict) -> None:
    try:
        data = tenfold.dumps(tensors, format=format)
    except (tenfold.LossError, tenfold.ArgumentError, tenfold.UnsupportedError) as error:
        # A name or a type that the format does not have.
        assert error.rule
        return
    found = tenfold.loads(data)
    assert set(found) == set(tensors)
    for name, array in tensors.items():
        assert found[name].shape == array.shape
        assert found[name].dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
        native = [np.ascontiguousarray(one).astype(one.dtype.newbyteorder("=")) for one in (found[name], array)]
        assert native[0].tobytes() == native[1].tobytes()
    copies = tenfold.loads(data, copy=True)
    for name, array in found.items():
        assert copies[name].tobytes() == np.ascontiguousarray(array).astype(array.dtype.newbyteorder("=")).tobytes()


def test_all_that_is_an_array(tmp_path: Path) -> None:
    array = np.arange(6, dtype="int32").reshape(2, 3)

    class Interface:
        __array_interface__ = array.__array_interface__

    class Capsule:
        def __dlpack__(self, **options):
            return array.__dlpack__(**options)

        def __dlpack_device__(self):
            return array.__dlpack_device__()

    path = tmp_path / "a.safetensors"
    archive = tenfold.open(tenfold.dumps({"t": array}, format="npz"))
    tensors = {
        "array": array,
        "interface": Interface(),
        "dlpack": Capsule(),
        "view": memoryview(array),
        "bytes": b"abc",
        "bytearray": bytearray(b"abc"),
        "list": [[1.5, 2.0], [3.0, 4.0]],
        "number": 7,
        "tensor": archive["t"],
        "lazy": tenfold.Lazy("int32", (2, 3), lambda: array),
        "lazy tensor": tenfold.Lazy("int32", (2, 3), lambda: archive["t"]),
        "big": array.astype(">i4"),
        "turned": array.T,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tenfold.SharedTensorWarning)
        report = tenfold.save(path, tensors)
    assert report.tensors == len(tensors) and report.nbytes == path.stat().st_size and report.files == (str(path),)
    found = tenfold.load(path)
    for name in ("array", "interface", "dlpack", "view", "tensor", "lazy", "lazy tensor", "big"):
        assert (found[name] == array).all(), name
    assert (found["turned"] == array.T).all() and bytes(found["bytes"]) == b"abc" and found["number"] == 7
    assert found["list"].dtype == np.float64 and found["bytes"].dtype == np.uint8
    for wrong in (object(), np.array(["text"]), np.array([object()]), {"a": 1}):
        with pytest.raises(TypeError):
            tenfold.dumps({"x": wrong}, format="safetensors")
    with pytest.raises(TypeError, match="names"):
        tenfold.dumps({1: array}, format="safetensors")
    pairs = tenfold.loads(tenfold.dumps([("a", array), ("b", array + 1)], format="npz"))
    assert list(pairs) == ["a", "b"]
    with pytest.raises(tenfold.ArgumentError, match="two tensors"):
        tenfold.dumps([("a", array), ("a", array + 1)], format="npz")


def test_small_types_and_sparse(tmp_path: Path) -> None:
    four = np.arange(-8, 8, dtype="int8").astype(ml_dtypes.int4).reshape(4, 4)
    half = np.array([0, 0.5, 1, 1.5, 2, 3, 4, -6]).astype(ml_dtypes.float4_e2m1fn)
    matrix = scipy.sparse.random(5, 7, 0.4, format="csr", rng=np.random.default_rng(3), dtype="float32")
    columns = matrix.tocsc()
    tenfold.save(tmp_path / "c.mat", {"csc": columns.astype("float64")})
    tensor = tenfold.open(tmp_path / "c.mat")["csc"]
    assert tensor.layout == "csc" and type(tensor.scipy()) is scipy.sparse.csc_array
    assert (tensor.scipy().toarray() == columns.toarray()).all()
    assert (scipy.io.loadmat(tmp_path / "c.mat")["csc"].toarray() == columns.toarray()).all()
    built, _ = build({"csc": columns})
    assert built["csc"].layout == "csc" and (built["csc"].numpy() == columns.toarray()).all()
    tenfold.save(tmp_path / "c.zt", {"csc": columns})
    listed = tenfold.open(tmp_path / "c.zt")["csc"]
    assert listed.layout in ("coo", "csr") and (listed.numpy() == columns.toarray()).all()
    path = tmp_path / "s.zt"
    tenfold.save(path, {"csr": matrix, "coo": matrix.tocoo(), "half": half}, version="2")
    archive = dict(tenfold.open(path))
    # No format that is written has them: as they are in memory.
    built, _ = build({"four": four})
    assert (built["four"].numpy() == four).all() and built["four"].nbytes == 8
    assert built["four"].numpy().dtype == ml_dtypes.int4
    assert (built["four"][1:3, ::-2] == four[1:3, ::-2]).all()
    assert (archive["half"].numpy() == half).all()
    assert archive["csr"].layout == "csr" and archive["coo"].layout == "coo"
    for name in ("csr", "coo"):
        found = archive[name].scipy()
        assert found.format == name and (found.toarray() == matrix.toarray()).all()
        assert (archive[name].numpy() == matrix.toarray()).all()
        assert (archive[name][1:4, 2] == matrix.toarray()[1:4, 2]).all()
    with pytest.raises(TypeError, match="not coo, csc or csr"):
        archive["half"].scipy()
    # A version that can hold it is chosen.
    tenfold.save(path, {"csr": matrix})
    assert tenfold.open(path)["csr"].layout == "csr"
    tenfold.save(path, {"csr": matrix}, sparse="as-is")
    assert tenfold.open(path)["csr"].layout == "row-major"


def test_quantized(tmp_path: Path) -> None:
    weights = np.random.default_rng(5).standard_normal((4, 64)).astype("float32")
    path = tmp_path / "q.gguf"
    tenfold.save(path, {"w": weights, "b": weights[0].copy()}, quantize="Q8_0")
    tensor = tenfold.open(path)["w"]
    assert tensor.dtype == "Q8_0" and tensor.dtype.kind == "quantized" and tensor.shape == (4, 64)
    assert tensor.blocks().shape == (8, 34) and tensor.blocks().tobytes() == bytes(tensor.data)
    array = tensor.numpy()
    assert array.dtype == np.float32 and np.abs(array - weights).max() < 0.05
    assert (tensor[1, ::3] == array[1, ::3]).all()
    assert tensor.numpy(dtype="float16").dtype == np.float16
    assert (tenfold.load(path, dtype="float64")["b"] == weights[0]).all()
    with pytest.raises(ValueError, match="quantized"):
        tensor.numpy(copy=False)


def test_casts(tmp_path: Path) -> None:
    values = np.array([1.0, 2.5, 1e30])
    data = tenfold.dumps({"a": values, "b": values + 0}, format="safetensors", cast={"*": "float32", "b": ml_dtypes.bfloat16})
    archive = tenfold.open(data)
    assert archive["a"].dtype == np.float32 and archive["b"].dtype == "bfloat16"
    tensor = tenfold.open(tenfold.dumps({"a": values}, format="npz"))["a"]
    assert tensor.numpy("float32").dtype == np.float32 and np.asarray(tensor, dtype="int8").dtype == np.int8
    with pytest.raises(ValueError, match="cast"):
        tensor.numpy("float32", copy=False)
    assert np.shares_memory(tensor.numpy("float64"), tensor.numpy())


def test_shared_memory(tmp_path: Path) -> None:
    array = np.arange(4.0)
    with pytest.warns(tenfold.SharedTensorWarning, match="'a', 'b'"):
        report = tenfold.save(tmp_path / "c.safetensors", {"a": array, "b": array, "c": array + 1})
    assert report.shared == (("a", "b"),) and set(tenfold.load(report.path)) == {"a", "b", "c"}
    report = tenfold.save(tmp_path / "d.safetensors", {"a": array, "b": array}, shared="drop")
    assert dict(tenfold.open(report.path).metadata) == {"b": "a"} and set(tenfold.load(report.path)) == {"a"}
    with pytest.raises(tenfold.ArgumentError, match="share memory"):
        tenfold.save(tmp_path / "e.safetensors", {"a": array, "b": array}, shared="error")
    assert not (tmp_path / "e.safetensors").exists()


def test_losses_are_listed_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with pytest.raises(tenfold.LossError) as caught:
        tenfold.save(path, {"a": np.zeros(3)}, metadata={"by": "me"})
    error = caught.value
    assert error.losses and error.losses[0].effect == "dropped" and not path.exists()
    assert error.hint is None or "--" not in error.hint
    report = tenfold.save(path, {"a": np.zeros(3)}, metadata={"by": "me"}, allow="dropped")
    assert report.losses[0].what == 'metadata "by"' and path.exists()
    dry = tenfold.save(tmp_path / "b.npy", {"a": np.zeros(3)}, dry_run=True)
    assert dry.dry_run and dry.nbytes is None and not (tmp_path / "b.npy").exists()
    with pytest.raises(FileExistsError):
        tenfold.save(path, {"a": np.zeros(3)}, force=False)
    with pytest.raises(FileNotFoundError):
        tenfold.save(tmp_path / "nowhere" / "a.npy", {"a": np.zeros(3)})
    with pytest.raises(tenfold.ArgumentError, match="format="):
        tenfold.save(tmp_path / "a.unknown", {"a": np.zeros(3)})
    with pytest.raises(ValueError, match="allow is"):
        tenfold.save(path, {"a": np.zeros(3)}, allow="everything")


def test_shards(tmp_path: Path) -> None:
    tensors = {f"layer.{n}.w": np.full(1000, n, "float32") for n in range(5)}
    report = tenfold.save(tmp_path / "m.safetensors", tensors, shard_size="8.5 kB")
    assert len(report.files) == 4
    archive = tenfold.open(report.files[0])
    assert len(archive.files) == 4
    assert all((archive[name].numpy() == array).all() for name, array in tensors.items())
    with pytest.raises(tenfold.ArgumentError, match="no size"):
        tenfold.save(tmp_path / "m.safetensors", tensors, shard_size="much")


def test_file_objects_are_written_to(tmp_path: Path) -> None:
    file = io.BytesIO()
    report = tenfold.save(file, {"a": np.arange(3)}, format="safetensors")
    assert report.path is None and report.nbytes == len(file.getvalue())
    assert (tenfold.loads(file.getvalue())["a"] == np.arange(3)).all()

    class Failing(io.BytesIO):
        def write(self, _):
            raise BrokenPipeError("nobody reads")

    with pytest.raises(BrokenPipeError, match="nobody reads"):
        tenfold.save(Failing(), {"a": np.arange(3)}, format="safetensors")


def test_what_lazy_tensors_raise_comes_back(tmp_path: Path) -> None:
    def fail():
        raise RuntimeError("no weights today")

    for make, kind, text in (
        (fail, RuntimeError, "no weights today"),
        (lambda: np.zeros(4, "float32"), tenfold.ArgumentError, "promised"),
        (lambda: object(), TypeError, "are saved"),
    ):
        with pytest.raises(kind, match=text):
            tenfold.save(tmp_path / "l.safetensors", {"l": tenfold.Lazy("float32", (3,), make)})
        assert not list(tmp_path.iterdir())


def test_a_writer_leaves_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    with pytest.raises(RuntimeError, match="stop"), tenfold.Writer(path) as writer:
        writer["a"] = np.zeros(3)
        writer.stream("b", "float32", (None,)).write(np.zeros(5, "float32"))
        raise RuntimeError("stop")
    assert not list(tmp_path.iterdir())
    with tenfold.Writer(path, metadata={"k": "v"}) as writer:
        writer["a"] = np.arange(3)[::-1]
        stream = writer.stream("b", "float32", (None, 2))
        for row in range(100):
            stream.write(np.full((1, 2), row, "float32"))
        with pytest.raises(tenfold.ArgumentError, match="two tensors"):
            writer["a"] = np.zeros(1)
        with pytest.raises(tenfold.ArgumentError, match="does not go into"):
            stream.write(np.zeros(2, "float64"))
    assert list(tmp_path.iterdir()) == [path]
    archive = tenfold.open(path)
    assert archive["b"].shape == (100, 2) and archive["a"].numpy().tolist() == [2, 1, 0]
    assert writer.report.tensors == 2
    with pytest.raises(ValueError, match="closed"):
        writer["c"] = np.zeros(1)
    with pytest.raises(tenfold.ArgumentError, match="bytes do not make"), tenfold.Writer(tmp_path / "x.npz") as writer:
        writer.stream("b", "float32", (3,)).write(np.zeros(5, "float32"))
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_writes_what_save_writes(tmp_path: Path) -> None:
    weights = np.random.default_rng(5).standard_normal((4, 64)).astype("float32")
    tenfold.save(tmp_path / "q.gguf", {"w": weights, "b": weights[0].copy()}, quantize="Q8_0")
    path, same = tmp_path / "w.gguf", tmp_path / "s.gguf"
    with tenfold.open(tmp_path / "q.gguf") as archive:
        with tenfold.Writer(path) as writer:
            writer["first"] = np.arange(3, dtype="float32")
            writer["w"] = archive["w"]
            writer["b"] = archive["b"]
            archive.close()
    with tenfold.open(tmp_path / "q.gguf") as archive:
        tenfold.save(same, {"first": np.arange(3, dtype="float32"), "w": archive["w"], "b": archive["b"]})
        assert tenfold.open(path)["w"].dtype == "Q8_0"
        assert bytes(tenfold.open(path)["w"].data) == bytes(archive["w"].data)
    assert path.read_bytes() == same.read_bytes()
    # What a file says about a tensor stays.
    data = tenfold.dumps({"w": weights}, format="ztensor", tensor_metadata={"w": {"note": "mine"}})
    with tenfold.Writer(tmp_path / "m.zt") as writer:
        writer["w"] = tenfold.open(data)["w"]
        assert tenfold.open(data)["w"].metadata["note"] == "mine"
    assert tenfold.open(tmp_path / "m.zt")["w"].metadata["note"] == "mine"
    matrix = scipy.sparse.eye_array(3, format="csr")
    with pytest.raises(TypeError, match="'sparse': sparse matrices"), tenfold.Writer(tmp_path / "x.zt") as writer:
        writer["sparse"] = matrix
    for place in ("s3://bucket/x.zt", io.BytesIO()):
        with pytest.raises(tenfold.ArgumentError, match="files of this machine"):
            tenfold.Writer(place)
    assert sorted(found.suffix for found in tmp_path.iterdir()) == [".gguf", ".gguf", ".gguf", ".zt"]


def test_masks_are_not_dropped(tmp_path: Path) -> None:
    array = np.ma.masked_less(np.arange(6.0), 2)
    path = tmp_path / "x.npz"
    for masked in (array, tenfold.Lazy("float64", (6,), lambda: array)):
        with pytest.raises(TypeError, match="'m': the array is masked"):
            tenfold.save(path, {"m": masked})
    with pytest.raises(TypeError, match="masked"), tenfold.Writer(path) as writer:
        writer["m"] = array
    assert not path.exists()
    # Nothing is masked in it.
    tenfold.save(path, {"m": np.ma.masked_array(np.arange(3.0)), "data": array.data, "mask": array.mask})
    assert tenfold.load(path)["m"].tolist() == [0, 1, 2] and tenfold.load(path)["mask"].sum() == 2


def test_directories_are_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    tenfold.save(path, {"a": np.zeros(3)})
    before = {found: found.read_bytes() for found in path.rglob("*") if found.is_file()}
    assert before
    with pytest.raises((tenfold.ArgumentError, OSError), match=r"x\.zarr"):
        tenfold.save(path, {"a": np.ones(3)})
    assert before == {found: found.read_bytes() for found in path.rglob("*") if found.is_file()}
    assert list(tmp_path.iterdir()) == [path]


def run(code: str, *args: object) -> dict:
    """What a program of its own says as JSON."""
    out = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


PEAK = """
import json, sys, resource, numpy as np, tenfold
path = sys.argv[1]
megabytes = 64
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured on Linux")
def test_memory_does_not_grow_with_lazy_tensors(tmp_path: Path) -> None:
    code = (
        PEAK
        + """
make = lambda: np.ones(megabytes << 18, 'float32')
make(); before = peak()
tenfold.save(path, {f't{n}': tenfold.Lazy('float32', (megabytes << 18,), make) for n in range(8)}, sync=False)
print(json.dumps({'grown': peak() - before}))
"""
    )
    found = run(code, tmp_path / "l.safetensors")
    assert found["grown"] < (64 + 48) << 20, found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured on Linux")
def test_memory_of_streams_copies_and_views(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    code = (
        PEAK
        + """
before = peak()
with tenfold.Writer(path, sync=False) as writer:
    stream = writer.stream('s', 'float32', (None,))
    for _ in range(256): stream.write(np.ones(1 << 18, 'float32'))
print(json.dumps({'grown': peak() - before}))
"""
    )
    assert run(code, path)["grown"] < 48 << 20
    code = (
        PEAK
        + """
before = peak()
arrays = tenfold.load(path, copy=True, mmap=False)
print(json.dumps({'grown': peak() - before, 'nbytes': sum(a.nbytes for a in arrays.values())}))
"""
    )
    found = run(code, path)
    assert found["grown"] < 1.05 * found["nbytes"] + (16 << 20), found
    code = (
        PEAK
        + """
import gc
tenfold.load(path); before = peak()
for _ in range(200):
    arrays = tenfold.load(path); arrays['s'][:10].sum(); archive = tenfold.open(path); archive['s'].stats
print(json.dumps({'grown': peak() - before}))
"""
    )
    assert run(code, path)["grown"] < 24 << 20


def test_other_threads_run_meanwhile(tmp_path: Path) -> None:
    array = np.zeros(64 << 20, "uint8")
    path = tmp_path / "t.safetensors"
    turns = 0
    done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.wait(0.001):
            turns += 1

    # Nobody has to give the lock away: another thread runs only where it is let go.
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        for work in (
            lambda: tenfold.save(path, {"a": array}, sync=False),
            lambda: tenfold.digest(path),
            lambda: tenfold.stats(path),
            lambda: tenfold.load(path, copy=True, mmap=False),
            lambda: tenfold.convert(path, tmp_path / "t.zt", zstd=1, sync=False, force=True),
        ):
            seen = turns
            work()
            assert turns > seen
        seen = turns
        sum(range(100_000))
        assert turns == seen
    finally:
        sys.setswitchinterval(before)
        done.set()
        thread.join()


def test_a_name_that_is_no_path() -> None:
    with pytest.raises(tenfold.ArgumentError, match="http"):
        tenfold.open("http://example.org/model.safetensors")
    with pytest.raises(FileNotFoundError) as caught:
        tenfold.open("nowhere.safetensors")
    assert caught.value.filename == "nowhere.safetensors"
    assert os.fspath(caught.value.filename) and caught.value.errno
