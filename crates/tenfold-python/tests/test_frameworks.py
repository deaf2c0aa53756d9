"""Arrays of other packages: every type, layout and byte order."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tenfold

TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]
TYPES += ["complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
TYPES += ["float8_e8m0fnu"]


def array_of(name: str) -> np.ndarray:
    dtype = np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)
    return np.array([[0, 1, 2], [1, 2, 4]]).astype(dtype)


def raw(array: np.ndarray) -> bytes:
    array = np.ascontiguousarray(array)
    return array.astype(array.dtype.newbyteorder("=")).reshape(-1).view(np.uint8).tobytes()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tenfold.Archive:
    tensors = {}
    for name in TYPES:
        tensors[name] = array_of(name)
        tensors[name + ".columns"] = np.asfortranarray(array_of(name))
        if tensors[name].dtype.itemsize > 1 and name != "bfloat16":
            tensors[name + ".big"] = array_of(name).astype(array_of(name).dtype.newbyteorder(">"))
    path = tmp_path_factory.mktemp("types") / "types.zt"
    # Column-major and big-endian tensors of one file: those of version 0.1 and of memory have both.
    from tenfold._inputs import build

    built, _ = build(tensors)
    tenfold.save(path, built)
    assert path.exists()
    return built


@pytest.mark.parametrize("name", TYPES)
def test_types_have_many_names(name: str) -> None:
    dtype = tenfold.dtype(name)
    numpy = array_of(name).dtype
    assert (
        dtype.name == name
        and dtype == name
        and dtype == numpy
        and dtype == tenfold.dtype(numpy)
        and dtype is tenfold.dtype(name)
    )
    assert np.dtype(dtype) == numpy and np.zeros(2, dtype).dtype == numpy and hash(dtype) == hash(tenfold.dtype(numpy))
    assert dtype.itemsize == numpy.itemsize and dtype.bits == 8 * numpy.itemsize
    assert dtype != "int7" and dtype != 5 and str(dtype) == name and repr(dtype) == f"dtype('{name}')"


def test_other_spellings() -> None:
    assert tenfold.dtype("F8_E4M3") == "float8_e4m3fn" == tenfold.dtype("f8_e4m3")
    assert tenfold.dtype("Q4_K").block == (256, 144) and tenfold.dtype("gguf:Q4_K").kind == "quantized"
    assert tenfold.dtype(float) == "float64" and tenfold.dtype(bool) == np.bool_ and tenfold.dtype(np.int8).code == "i8"
    assert tenfold.dtype("float64x4").kind == "lanes"
    with pytest.raises(ValueError):
        tenfold.dtype("nonsense")
    with pytest.raises(TypeError):
        tenfold.dtype(object())


def test_numpy_has_every_type(archive: tenfold.Archive) -> None:
    for name, tensor in archive.items():
        want = raw(array_of(name.partition(".")[0]))
        array = tensor.numpy()
        assert raw(array) == want and array.shape == (2, 3), name
        if ".columns" in name and tensor.is_zero_copy:
            assert array.flags.f_contiguous
        if ".big" in name and tensor.is_zero_copy:
            assert array.dtype.byteorder == ">" or array.dtype.itemsize == 1
        assert raw(np.asarray(tensor)) == want
        assert tensor.numpy(copy=True).flags.c_contiguous and raw(tensor.numpy(copy=True)) == want


def test_numpy_reads_capsules(archive: tenfold.Archive) -> None:
    for name, tensor in archive.items():
        plain = name.partition(".")[0]
        if plain in ("bfloat16",) or plain.startswith("float8"):
            continue
        array = np.from_dlpack(tensor)
        assert raw(array) == raw(array_of(plain)), name
        if ".big" not in name and plain != "bool":
            assert not array.flags.writeable
        with pytest.raises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        archive["float32.big"].__dlpack__(max_version=(1, 0), copy=False)
    capsule = archive["float32"].__dlpack__()
    assert "dltensor" in repr(capsule) and "versioned" not in repr(capsule)
    del capsule


def test_what_is_missing_is_said() -> None:
    import subprocess
    import sys

    code = """
import sys
sys.modules['ml_dtypes'] = None
import tenfold
try: tenfold.dtype('bfloat16').numpy
except ImportError as error: print(error)
"""
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "pip install 'tenfold[numpy]'" in said


def test_types_that_numpy_does_not_have_are_said_with_the_tensor() -> None:
    archive = tenfold.open("fixtures/tens/valid/ix_f128.tens")
    name = next(name for name, tensor in archive.items() if tensor.dtype == "float128")
    for read in (lambda: archive[name].numpy(), lambda: archive.numpy(copy=True)):
        with pytest.raises(tenfold.UnsupportedError, match=f"{name}.*float128") as caught:
            read()
        assert caught.value.tensor == name


#: Files whose numbers are big-endian, by other programs.
BIG = ["npy", "nc", "h5", "mat"]


@pytest.fixture(params=BIG)
def big_endian(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, np.ndarray]:
    """A file, its tensor's numbers."""
    path = tmp_path / f"big.{request.param}"
    array = np.arange(12, dtype=">f4").reshape(3, 4)
    if request.param == "npy":
        np.save(path, array)
    elif request.param == "nc":
        scipy_io = pytest.importorskip("scipy.io")
        with scipy_io.netcdf_file(path, "w") as file:
            file.createDimension("x", 3)
            file.createDimension("y", 4)
            file.createVariable("a", ">f4", ("x", "y"))[:] = array
    elif request.param == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            file["a"] = array
    else:
        found = sorted(Path("fixtures/mat/valid").glob("*.mat"))
        for path in found:
            archive = tenfold.open(path)
            for tensor in archive.values():
                if tensor.byteorder == "big" and tensor.dtype == "float64" and tensor.ndim == 2:
                    return path, tensor.name, tensor.numpy()
        pytest.skip("no such golden file")
    (name,) = tenfold.open(path)
    return path, name, array


def numbers_of(framework: str, array: object) -> list:
    return array.tolist() if framework != "tensorflow" else array.numpy().tolist()


def check_big_endian(framework: str, path: Path, name: str, array: np.ndarray) -> None:
    from tenfold.compat.safetensors import safe_open

    with safe_open(path, framework) as file:
        assert numbers_of(framework, file.get_tensor(name)) == array.tolist()
        assert numbers_of(framework, file.get_slice(name)[1:, :2]) == array[1:, :2].tolist()
        assert numbers_of(framework, file.get_slice(name)[:]) == array.tolist()
    for copy in (None, True) if framework in ("numpy", "torch") else (None,):
        loaded = tenfold.load(path, framework=framework, include=name, copy=copy)[name]
        assert numbers_of(framework, loaded) == array.tolist()


def test_big_endian_numbers_of_numpy(big_endian) -> None:
    assert tenfold.open(big_endian[0])[big_endian[1]].byteorder == "big"
    check_big_endian("numpy", *big_endian)


@pytest.mark.parametrize("framework", ["tensorflow", "mlx"])
def test_packages_that_are_installed_alone(framework: str, big_endian, archive: tenfold.Archive) -> None:
    pytest.importorskip({"mlx": "mlx.core"}.get(framework, framework))
    path, name, array = big_endian
    if framework == "mlx" and array.dtype.itemsize == 8:
        array = array.astype("float32")
    check_big_endian(framework, path, name, array)
    for name, tensor in archive.items():
        kind = name.partition(".")[0]
        # MLX has neither these nor wide floats; TensorFlow makes no tensors of small ones from NumPy.
        if kind.startswith("float8") or (framework == "mlx" and kind in ("float64", "complex128")):
            continue
        made = getattr(tensor, framework)()
        wanted = array_of(kind).astype("complex128" if "complex" in kind else "float64").tolist()
        found = made.numpy().astype(np.asarray(wanted).dtype).tolist() if framework == "tensorflow" else made.tolist()
        assert found == wanted, name


# What needs PyTorch or JAX is part of the full run.


@pytest.mark.full
@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_big_endian_numbers(framework: str, big_endian) -> None:
    module = pytest.importorskip(framework)
    if framework == "jax" and big_endian[2].dtype.itemsize == 8:
        module.config.update("jax_enable_x64", True)
    try:
        check_big_endian(framework, *big_endian)
    finally:
        if framework == "jax":
            module.config.update("jax_enable_x64", False)


@pytest.mark.full
def test_slices_of_small_types_are_those_of_the_tensor(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tenfold.compat.safetensors import safe_open

    path = tmp_path / "s.zt"
    half = np.array([0, 0.5, 1, 1.5, 2, 3, 4, -6]).astype(ml_dtypes.float4_e2m1fn).reshape(2, 4)
    tenfold.save(path, {"half": half}, version="2")
    with safe_open(path, "pt") as file:
        whole, part = file.get_tensor("half"), file.get_slice("half")
        assert part[1:, :2].dtype == whole.dtype == torch.float4_e2m1fn_x2
        assert part[:].view(torch.uint8).tolist() == whole.view(torch.uint8).tolist()
        assert part[1:, :2].view(torch.uint8).tolist() == whole.view(torch.uint8)[1:, :1].tolist()
        with pytest.raises(tenfold.UnsupportedError, match="in pairs"):
            part[:, :3]


@pytest.mark.full
def test_types_that_torch_does_not_have_are_said_with_the_tensor(archive: tenfold.Archive) -> None:
    pytest.importorskip("torch")
    built = tenfold.open("fixtures/tens/valid/ix_f128.tens")
    name = next(name for name, tensor in built.items() if tensor.dtype == "float128")
    for read in (lambda: built[name].torch(), lambda: built.torch(), lambda: built.torch(copy=True)):
        with pytest.raises(tenfold.UnsupportedError, match=f"{name}.*PyTorch has no float128") as caught:
            read()
        assert caught.value.tensor == name


@pytest.mark.full
def test_torch_has_every_type(archive: tenfold.Archive, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "t.safetensors"
    plain = {name: tensor for name, tensor in archive.items() if "." not in name}
    plain.pop("complex128")
    tenfold.save(path, plain)
    before = path.read_bytes()
    mapped = tenfold.open(path)
    for source in (archive, mapped, tenfold.open(path, mmap=False)):
        for name, tensor in source.items():
            found = tensor.torch()
            assert tuple(found.shape) == (2, 3)
            assert found.contiguous().view(torch.uint8).numpy().tobytes() == raw(array_of(name.partition(".")[0])), name
            assert tenfold.dtype(found.dtype) == tensor.dtype and tensor.dtype.torch == found.dtype
    view = mapped["float32"].torch(copy=False)
    view += 1
    assert path.read_bytes() == before, "the file stays as it is"
    assert (mapped["float32"].numpy() == array_of("float32")).all()
    with pytest.raises(ValueError, match="cannot be viewed"):
        tenfold.open(path, mmap=False)["float32"].torch(copy=False)
    own = mapped["float32"].torch(copy=True)
    assert own.data_ptr() != view.data_ptr()
    loaded = tenfold.load(path, framework="torch")
    assert set(loaded) == set(plain)
    assert torch.from_dlpack(mapped["bfloat16"]).dtype == torch.bfloat16
    assert mapped["float32"].torch(dtype=torch.float16).dtype == torch.float16


@pytest.mark.full
def test_torch_inputs(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    base = torch.randn(8, 6)
    tensors = {
        "plain": base.clone(),
        "turned": base.clone().t(),
        "strided": base.clone()[::2, 1::2],
        "expanded": torch.randn(1, 4).expand(3, 4),
        "half": base.bfloat16(),
        "small": base.to(torch.float8_e5m2),
        "conj": torch.randn(3, dtype=torch.complex64).conj(),
        "grad": torch.nn.Parameter(torch.randn(3)),
        "scalar": torch.tensor(3),
        "empty": torch.empty(0, 4),
        "bool": torch.tensor([True, False]),
        "channels": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }
    path = tmp_path / "t.safetensors"
    report = tenfold.save(path, tensors)
    assert tenfold.open(path).metadata["format"] == "pt"
    assert report.shared == ()
    found = tenfold.load(path, framework="torch")
    from safetensors.torch import load_file

    for other in (found, load_file(path)):
        for name, tensor in tensors.items():
            want = tensor.detach().resolve_conj().contiguous()
            assert other[name].dtype == want.dtype and other[name].shape == want.shape, name
            if want.numel():
                same = [one.contiguous().reshape(-1).view(torch.uint8) for one in (other[name], want)]
                assert torch.equal(*same), name
    shared = {"a": base, "b": base, "row": base[:1]}
    with pytest.warns(tenfold.SharedTensorWarning):
        tenfold.save(path, shared)
    assert torch.equal(tenfold.load(path, framework="torch")["row"], base[:1])
    tenfold.save(path, {"first": base[:4], "second": base[4:]}, shared="error")
    tenfold.save(path, shared, shared="drop")
    assert set(tenfold.open(path)) == {"a", "row"} and tenfold.open(path).metadata["b"] == "a"
    with pytest.raises(TypeError, match="to_dense"):
        tenfold.save(path, {"s": torch.eye(3).to_sparse()})


@pytest.mark.full
def test_models(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(10, 4)
            self.out = torch.nn.Linear(4, 10, bias=False)
            self.out.weight = self.embed.weight

    model, other = Tied(), Tied()
    path = tmp_path / "m.safetensors"
    report = tenfold.save_model(model, path)
    assert report.tensors == 1
    assert tenfold.load_model(other, path) == ([], [])
    assert torch.equal(model.out.weight, other.out.weight)
    linear = torch.nn.Linear(4, 10)
    with pytest.raises(RuntimeError, match="missing: weight, bias"):
        tenfold.load_model(linear, path)
    assert tenfold.load_model(linear, path, strict=False) == (["weight", "bias"], ["embed.weight"])


@pytest.mark.full
def test_memory_of_torch_is_filled() -> None:
    torch = pytest.importorskip("torch")
    tensor = tenfold.open(tenfold.dumps({"a": array_of("bfloat16")}, format="safetensors"))["a"]
    out = torch.zeros(2, 3, dtype=torch.bfloat16)
    tensor.read_into(out)
    assert out.float().tolist() == [[0, 1, 2], [1, 2, 4]]
    with pytest.raises(ValueError, match="contiguous"):
        tensor.read_into(torch.zeros(3, 2, dtype=torch.bfloat16).t())


@pytest.mark.full
def test_jax(archive: tenfold.Archive) -> None:
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    for name, tensor in archive.items():
        plain = name.partition(".")[0]
        if plain in ("int64", "uint64", "float64", "complex128"):
            with pytest.raises(ValueError, match="jax_enable_x64"):
                tensor.jax()
            assert tensor.jax(dtype="int32" if "int" in plain else "complex64" if "complex" in plain else "float32").shape == (
                2,
                3,
            )
            continue
        found = tensor.jax()
        assert isinstance(found, jax.Array) and raw(np.asarray(found)) == raw(array_of(plain)), name
        assert raw(np.asarray(jnp.asarray(tensor))) == raw(array_of(plain)), name
    data = tenfold.dumps({"a": jnp.arange(6.0).reshape(2, 3).astype(jnp.bfloat16)}, format="safetensors")
    assert tenfold.open(data)["a"].dtype == "bfloat16" and tenfold.load(data, framework="jax")["a"].shape == (2, 3)


@pytest.mark.full
def test_fsspec(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://a.safetensors", "wb") as file:
        tenfold.save(file, {"a": np.arange(5)}, format="safetensors")
    with fsspec.open("memory://a.safetensors", "rb") as file:
        assert tenfold.open(file)["a"].numpy().tolist() == [0, 1, 2, 3, 4]


@pytest.mark.full
def test_gguf_of_the_reference(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "q.gguf"
    weights = np.random.default_rng(1).standard_normal((4, 256)).astype("float32")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tenfold.save(path, {"w": weights}, metadata={"general.architecture": "llama"}, quantize="Q8_0")
        reader = gguf.GGUFReader(path)
    (found,) = reader.tensors
    assert (gguf.dequantize(found.data, found.tensor_type).reshape(4, 256) == tenfold.load(path)["w"]).all()


@pytest.mark.full
def test_tensors_go_to_devices_through_staging_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from tenfold import _torch

    path = tmp_path / "a.safetensors"
    arrays = {f"t{n}": np.full((n + 1, 3), n, "float32") for n in range(5)} | {"empty": np.zeros((0, 2), "float16")}
    tenfold.save(path, arrays)
    # A device without memory says of which type and shape everything would be.
    there = tenfold.load(path, framework="torch", device="meta")
    assert {name: tuple(tensor.shape) for name, tensor in there.items()} == {
        name: array.shape for name, array in arrays.items()
    }
    assert all(tensor.device.type == "meta" for tensor in there.values()) and list(there) == list(arrays)
    assert tenfold.open(path)["t1"].torch(device="meta").dtype == torch.float32
    for refused in (
        lambda: tenfold.load(path, framework="torch", device="meta", copy=False),
        lambda: tenfold.open(path)["t1"].torch(device="meta", copy=False),
    ):
        with pytest.raises(ValueError, match="device needs a copy"):
            refused()
    # And the CPU as if it were elsewhere, what arrives; in several blocks.
    monkeypatch.setattr(_torch, "_STAGED", 100)
    archive = tenfold.open(path)
    tensors = [(place, tensor) for place, tensor in enumerate(archive.values()) if tensor.size]
    told: list[tuple[int, int]] = []
    staged = dict(_torch._staged(torch, archive, tensors, torch.device("cpu"), lambda *now: told.append(now), 0))
    assert all((staged[name].numpy() == arrays[name]).all() for name in staged) and len(staged) == 5
    assert told[-1] == (sum(array.nbytes for array in arrays.values()),) * 2
