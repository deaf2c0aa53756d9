"""Archives: mappings, lifetimes, threads, processes."""

from __future__ import annotations

import concurrent.futures
import gc
import io
import json
import multiprocessing
import os
import pickle
import sys
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from conftest import FIXTURES

import tenfold


def test_an_archive_is_a_mapping(mixed: Path) -> None:
    archive = tenfold.open(mixed)
    assert isinstance(archive, Mapping)
    assert len(archive) == 6 and "a.bias" in archive and "nothing" not in archive and 3 not in archive
    assert list(archive) == list(archive.keys()) == [name for name, _ in archive.items()]
    assert [tensor.name for tensor in archive.values()] == list(archive)
    assert archive.get("nothing") is None and archive.get("nothing", 5) == 5
    assert archive.get("a.bias").shape == (7,)
    assert "a.bias" in archive.keys() and len(archive.items()) == 6
    assert set(archive | {"more": 1}) == {*archive, "more"}
    match archive:
        case {"a.bias": bias}:
            assert bias.shape == (7,)
        case _:
            pytest.fail("no match")
    with pytest.raises(KeyError, match=r"did you mean 'a\.weight'"):
        archive["a.wieght"]
    with pytest.raises(KeyError):
        archive[0]


def test_facts_of_an_archive(mixed: Path) -> None:
    archive = tenfold.open(mixed)
    assert (archive.format, archive.version, archive.path) == ("safetensors", None, mixed)
    assert archive.files[0].path == mixed and archive.files[0].nbytes == mixed.stat().st_size
    assert archive.nbytes == sum(tensor.nbytes for tensor in archive.values())
    assert archive.limits == tenfold.Limits()
    assert archive.findings == ()
    assert dict(archive.metadata) == {"by": "me"} and archive.metadata.types == {"by": "string"}
    assert repr(archive).startswith("<Archive mixed.safetensors: safetensors, 6 tensors, ")
    assert repr(archive["a.weight"]) == "<Tensor 'a.weight' float32 (5, 7) row-major>"
    assert "a.weight" in archive.tree()


def test_selecting(mixed: Path) -> None:
    archive = tenfold.open(mixed)
    assert set(archive.select("a.*")) == {"a.weight", "a.bias"}
    assert set(archive.select(["a.*", "half"], "*.bias")) == {"a.weight", "half"}
    assert list(archive.select(where=lambda tensor: tensor.ndim == 3)) == ["half"]
    assert archive.select("a.weight")["a.weight"].numpy().shape == (5, 7)
    with pytest.raises(ValueError, match="unclosed"):
        archive.select("[")


def test_closing_ends_the_archive_and_not_its_arrays(mixed: Path) -> None:
    with tenfold.open(mixed) as archive:
        tensor = archive["a.weight"]
        array = tensor.numpy()
        data = tensor.data
        want = array.copy()
    assert archive.closed and repr(archive) == "<Archive closed>"
    for use in (lambda: len(archive), lambda: archive["a.bias"], lambda: tensor.shape, lambda: tensor.numpy(), archive.keys):  # noqa: F821
        with pytest.raises(ValueError, match="closed"):
            use()
    archive.close()
    del archive, tensor
    gc.collect()
    mixed.unlink()
    assert (array == want).all() and bytes(data) == want.tobytes()


def test_memory_is_let_go(mixed: Path) -> None:
    source = np.fromfile(mixed, np.uint8)
    reference = weakref.ref(source)
    archive = tenfold.open(source)
    array = archive["a.weight"].numpy()
    del source, archive
    gc.collect()
    assert reference() is not None, "the array lies over it"
    assert array.sum() == array.copy().sum()
    del array
    gc.collect()
    assert reference() is None


def test_views_are_read_only_and_copies_are_not(mixed: Path) -> None:
    tensor = tenfold.open(mixed)["a.weight"]
    view = tensor.numpy()
    assert tensor.is_zero_copy and not view.flags.writeable and not view.flags.owndata
    with pytest.raises(ValueError):
        view[0, 0] = 1
    assert np.shares_memory(view, tensor.numpy(copy=False))
    copy = tensor.numpy(copy=True)
    copy[0, 0] = 1
    assert not np.shares_memory(view, copy)
    read = tenfold.open(mixed, mmap=False)["a.weight"]
    assert not read.is_zero_copy and (read.numpy() == view).all() and read.numpy().flags.writeable
    with pytest.raises(ValueError, match="not mapped"):
        read.numpy(copy=False)
    assert np.array(tensor).flags.writeable and not np.asarray(tensor).flags.writeable


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, io.BytesIO])
def test_buffers_and_file_objects(mixed: Path, kind) -> None:
    archive = tenfold.open(kind(mixed.read_bytes()))
    assert (archive["a.bias"].numpy() == np.arange(7)).all()


def test_files_of_the_system_and_others(mixed: Path) -> None:
    class Other(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self.inner = io.BytesIO(data)

        def readable(self) -> bool:
            return True

        def seek(self, *args: int) -> int:
            return self.inner.seek(*args)

        def read(self, size: int = -1) -> bytes:
            # No more than asked for, and less than that.
            return self.inner.read(min(size, 50) if size >= 0 else 50)

    with open(mixed, "rb") as file:
        archive = tenfold.open(file)
        assert archive["a.weight"].is_zero_copy
        assert tenfold.is_tensor_file(file) == "safetensors"
    assert archive["a.weight"].numpy().shape == (5, 7)
    archive = tenfold.open(Other(mixed.read_bytes()))
    assert (archive["a.bias"].numpy() == np.arange(7)).all()
    with pytest.raises(TypeError, match="text"):
        tenfold.open(io.StringIO("text"))
    with pytest.raises(TypeError, match="not int"):
        tenfold.open(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="can be pickled"):
        pickle.dumps(archive)


def test_what_a_file_object_raises_comes_back(mixed: Path) -> None:
    class Broken(io.BytesIO):
        def fileno(self) -> int:
            raise io.UnsupportedOperation

    class Failing:
        def seek(self, *_: int) -> int:
            return 1000

        def read(self, *_: int) -> bytes:
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        tenfold.open(Failing())
    assert len(tenfold.open(Broken(mixed.read_bytes()))) == 6


def test_several_sources_are_one_archive(tmp_path: Path) -> None:
    paths = [tmp_path / "a.safetensors", tmp_path / "b.npz"]
    tenfold.save(paths[0], {"a": np.zeros(2)})
    tenfold.save(paths[1], {"b": np.ones(3)})
    archive = tenfold.open(paths)
    assert set(archive) == {"a", "b"} and archive["b"].numpy().sum() == 3


def test_pickling(mixed: Path, tmp_path: Path) -> None:
    archive = tenfold.open(mixed)
    again = pickle.loads(pickle.dumps(archive))
    assert list(again) == list(archive)
    tensor = pickle.loads(pickle.dumps(archive["a.bias"]))
    assert (tensor.numpy() == np.arange(7)).all()
    assert len(pickle.dumps(archive["a.weight"])) < 2000, "a path and a name, not the data"
    part = pickle.loads(pickle.dumps(archive.select("a.*")))
    assert set(part) == {"a.weight", "a.bias"}
    assert len(pickle.loads(pickle.dumps(tenfold.open(mixed.read_bytes())))) == 6
    for other in (archive["half"].dtype, tenfold.Limits(rank=3)):
        assert pickle.loads(pickle.dumps(other)) == other
    frozen = pickle.dumps(archive)
    tenfold.save(mixed, {"other": np.zeros(5)})
    with pytest.raises(tenfold.CorruptError, match=r"file\.changed"):
        pickle.loads(frozen)


def test_a_changed_shard_is_noticed(tmp_path: Path) -> None:
    tensors = {f"t{number}": np.arange(100.0) + number for number in range(4)}
    report = tenfold.save(tmp_path / "model.safetensors", tensors, shard_size=1000)
    shards = [path for path in map(Path, report.files) if path.suffix == ".safetensors"]
    assert len(shards) == 4
    index = next(tmp_path.glob("*.index.json"))
    for source in (index, tmp_path):
        archive = tenfold.open(source)
        assert len(archive) == 4 and len(archive.files) >= 4
        frozen = [pickle.dumps(one) for one in (archive, archive.select("t3"), archive["t0"])]
        for one in frozen:
            pickle.loads(one)
        # Of the same length, at another time.
        os.utime(shards[3], ns=(0, os.stat(shards[3]).st_mtime_ns - 1_000_000_000))
        for one in frozen:
            with pytest.raises(tenfold.CorruptError, match=shards[3].name):
                pickle.loads(one)


def total(tensor: tenfold.Tensor) -> float:
    return float(tensor.numpy().sum())


def total_of(archive: tenfold.Archive) -> float:
    return sum(total(tensor) for tensor in archive.values())


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_processes(mixed: Path, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    archive = tenfold.open(mixed)
    tensors = [archive["a.weight"], archive["a.bias"]]
    want = [total(tensor) for tensor in tensors]
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(total, tensors)) == want
        assert pool.submit(total_of, archive).result() == total_of(archive)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_reads_and_writes(mixed: Path, tmp_path: Path) -> None:
    archive = tenfold.open(mixed)
    tenfold.digest(archive)
    child = os.fork()
    if child == 0:
        try:
            tenfold.save(tmp_path / "child.safetensors", archive)
            os._exit(0 if archive["a.bias"].numpy().sum() == 21 else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert tenfold.diff(archive, tmp_path / "child.safetensors")


def test_threads_share_an_archive(mixed: Path) -> None:
    archive = tenfold.open(mixed)
    want = {name: tensor.digest() for name, tensor in archive.items()}
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                for name, tensor in archive.items():
                    assert tensor.numpy().shape == tensor.shape
                    assert archive[name].digest() == want[name]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_file_that_is_replaced_stays_as_it_was(mixed: Path) -> None:
    archive = tenfold.open(mixed)
    view = archive["a.weight"].numpy()
    want = view.copy()
    tenfold.save(mixed, {"a.weight": np.zeros(5, "float32")})
    assert (view == want).all()
    tensors = tenfold.load(mixed)
    tenfold.save(mixed, {"a.weight": tensors["a.weight"] + 1, "kept": tensors["a.weight"]})
    assert tenfold.load(mixed)["kept"].sum() == 0


def test_metadata_is_typed_and_lazy(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    tokens = [f"token {n}" for n in range(3000)]
    said = {
        "general.architecture": "llama",
        "n": np.uint32(7),
        "x": np.float32(0.5),
        "yes": True,
        "tokenizer.ggml.tokens": tokens,
        "numbers": np.arange(100, dtype="int16"),
    }
    tenfold.save(path, {"w": np.zeros(4, "float32")}, metadata=said)
    archive = tenfold.open(path)
    metadata = archive.metadata
    assert metadata.types["n"] == "u32" and metadata.types["x"] == "f32" and metadata.types["yes"] == "bool"
    assert metadata["n"] == 7 and metadata["x"] == 0.5 and metadata["yes"] is True
    assert len(repr(metadata)) < 500
    assert metadata["tokenizer.ggml.tokens"] == tokens
    assert metadata["numbers"] == list(range(100))
    assert metadata == metadata.to_dict() == dict(metadata.items())
    assert metadata.get("nothing", 3) == 3 and "n" in metadata
    with pytest.raises(KeyError):
        metadata["nothing"]
    assert isinstance(metadata, Mapping)


def test_parts_and_places(mixed: Path) -> None:
    tensor = tenfold.open(mixed)["a.weight"]
    (part,) = tensor.parts
    assert part.role == "values" and part.nbytes == 140 and part.offset == tensor.offset
    assert mixed.read_bytes()[part.offset : part.offset + 140] == bytes(tensor.data) == tensor.tobytes()
    assert tensor.file.path == mixed and tensor.codec is None and tensor.byteorder == "little" and tensor.defect is None
    assert len(tensor) == 5 and tensor.size == 35 and tensor.ndim == 2 and tensor.stored_nbytes == tensor.nbytes == 140
    with pytest.raises(TypeError):
        len(tenfold.open(mixed)["scalar"])
    assert tenfold.open(mixed)["scalar"].item() == 2.5


def test_salvage(mixed: Path) -> None:
    cut = mixed.read_bytes()[:-100]
    with pytest.raises(tenfold.FormatError) as caught:
        tenfold.open(cut)
    assert caught.value.hint and "salvage=True" in caught.value.hint
    with pytest.warns(tenfold.FormatWarning):
        archive = tenfold.open(cut, salvage=True)
    broken = [tensor for tensor in archive.values() if tensor.defect is not None]
    whole = [tensor for tensor in archive.values() if tensor.defect is None]
    assert broken and whole
    assert isinstance(broken[0].defect, tenfold.Error)
    with pytest.raises(tenfold.Error):
        broken[0].numpy()
    for tensor in whole:
        tensor.numpy()


def test_limits_are_raised_by_name(tmp_path: Path) -> None:
    path = tmp_path / "r.safetensors"
    tenfold.save(path, {"w": np.zeros((1,) * 9)})
    with pytest.raises(tenfold.LimitError) as caught:
        tenfold.open(path, limits=tenfold.Limits(rank=8))
    assert caught.value.limit == "rank" and "tenfold.Limits(rank=" in caught.value.hint
    assert caught.value.hint in caught.value.__notes__


def test_html_is_escaped_and_small(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tenfold.save(path, {f"<script>{chr(97 + n % 26) * (n % 50 + 1)}.{n}</script>": np.zeros(1) for n in range(3000)})
    html = tenfold.open(path)._repr_html_()
    assert "<script" not in html and "&lt;script&gt;" in html and len(html.encode()) < 64 << 10


def test_importing_needs_no_other_package() -> None:
    import subprocess

    code = "import sys, tenfold; print([name for name in ('numpy', 'torch', 'ml_dtypes', 'tqdm') if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_reading_options() -> None:
    path = FIXTURES / "onnx/valid/nodes_and_subgraphs.onnx"
    known = json.loads(path.with_suffix(".json").read_text())
    extra = {tensor["name"]: tensor["sha256"] for tensor in known["extra_tensors"]}
    plain = tenfold.open(path)
    more = tenfold.open(path, options={"constants": "true"})
    assert extra and not set(extra) & set(plain)
    # Both branches have a tensor of the same name; the JSON has one of them.
    assert set(more) == {*plain, *extra, "sw~2"}
    assert {name: more[name].digest() for name in extra} == extra
    again = pickle.loads(pickle.dumps(more))
    assert set(again) == set(more)
    assert set(tenfold.load(path, options={"constants": "true"})) == set(more)
    with pytest.raises(tenfold.ArgumentError, match="nothing"):
        tenfold.open(path, options={"nothing": "true"})
    with pytest.raises(tenfold.ArgumentError, match="constants"):
        tenfold.open(path, options={"constants": "perhaps"})


def test_unknown_classes_are_records_where_that_is_asked_for() -> None:
    path = FIXTURES / "pytorch/reject/whole_module.pt"
    with pytest.raises(tenfold.UnsupportedError) as refused:
        tenfold.open(path)
    assert "opaque=True" in refused.value.hint
    archive = tenfold.open(path, opaque=True)
    assert list(archive) == ["weight", "bias"]
    assert all(tensor.numpy().shape == tensor.shape for tensor in archive.values())
