"""Operations: their results are the documents of the command."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import FIXTURES

import tenfold


def command(*args: object) -> dict:
    """What the command in the package prints as JSON."""
    done = subprocess.run([sys.executable, "-m", "tenfold", *map(str, args)], capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def same(found: dict, wanted: dict, but: tuple[str, ...] = ()) -> None:
    """Equal but for times, and for hints, which are in other words."""
    assert set(found) == set(wanted)
    for key in wanted:
        if key in but or key == "seconds":
            continue
        assert found[key] == wanted[key], key


@pytest.fixture
def other(mixed: Path, tmp_path: Path) -> Path:
    """The same with another number, type and name."""
    path = tmp_path / "other.safetensors"
    tensors = {name: tensor.numpy(copy=True) for name, tensor in tenfold.open(mixed).items()}
    tensors["a.weight"][1, 2] += 1
    tensors["more"] = tensors.pop("half")
    tensors["a.bias"] = tensors["a.bias"].astype("int32")
    tenfold.save(path, tensors, metadata={"by": "you", "x": "y"})
    return path


def test_documents_are_those_of_the_command(mixed: Path, other: Path) -> None:
    same(tenfold.inspect(mixed).to_dict(), command("inspect", "--json", mixed))
    same(tenfold.verify(mixed).to_dict(), command("verify", "--json", mixed))
    same(tenfold.verify(mixed, content=True).to_dict(), command("verify", "--content", "--json", mixed))
    same(tenfold.digest(mixed).to_dict(), command("digest", "--json", mixed))
    same(tenfold.stats(mixed, bins=4).to_dict(), command("stats", "--hist=4", "--json", mixed))
    same(tenfold.diff(mixed, other).to_dict(), command("diff", "--json", mixed, other))
    same(tenfold.diff(mixed, mixed).to_dict(), command("diff", "--json", mixed, mixed))


@pytest.mark.parametrize("name", ["gguf/valid/split_3", "ztensor/valid/v2_quant_group.zt", "tens/valid/ix_f128.tens"])
def test_documents_of_golden_files(name: str) -> None:
    path = f"fixtures/{name}"
    if not os.path.exists(path):
        pytest.skip("no such file")
    same(tenfold.inspect(path, full=True).to_dict(), command("inspect", "--full", "--json", path))
    same(tenfold.verify(path).to_dict(), command("verify", "--json", path))
    same(tenfold.digest(path).to_dict(), command("digest", "--json", path))


def test_documents_of_quantized_tensors_as_numbers(tmp_path: Path) -> None:
    path = "fixtures/quantized/gptq/b4_g32_v1"
    numbers = tmp_path / "numbers.safetensors"
    tenfold.convert(path, numbers, dequantize=True, allow="dropped")
    option, name = "--dequantize", "model.layers.0.self_attn.q_proj.weight"
    plain = tenfold.stats(path)
    assert name not in plain and name in tenfold.stats(path, dequantize=True)
    same(tenfold.digest(path, dequantize=True).to_dict(), command("digest", option, "--json", path))
    same(tenfold.stats(path, dequantize=True).to_dict(), command("stats", option, "--json", path))
    # Patterns are about the names that the numbers have.
    same(
        tenfold.stats(path, dequantize=True, include="*.weight").to_dict(),
        command("stats", option, "--include=*.weight", "--json", path),
    )
    found = tenfold.diff(path, numbers, dequantize=True, ignore_metadata=True)
    same(found.to_dict(), command("diff", option, "--ignore-metadata", "--json", path, numbers))
    assert found and not tenfold.diff(path, numbers, ignore_metadata=True)


def test_documents_of_what_is_written(mixed: Path, other: Path, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()

    def both(report: tenfold.Report, *args: object) -> None:
        document = json.loads(json.dumps(command(*args, "--json", "--no-progress")).replace(str(theirs), str(ours)))
        same(report.to_dict(), document)

    both(tenfold.convert(mixed, ours / "a.zt"), "convert", mixed, theirs / "a.zt")
    both(
        tenfold.convert(mixed, ours / "b.zt", cast="float32", zstd=3, check=True, include="a.*"),
        *("convert", mixed, theirs / "b.zt", "--cast", "f32", "--zstd", 3, "--check", "--include", "a.*"),
    )
    both(tenfold.convert(mixed, ours / "c.zt", dry_run=True), "convert", mixed, theirs / "c.zt", "--dry-run")
    both(
        tenfold.rename(mixed, ours / "r.safetensors", rules=[(r"^a\.", "b.")]),
        *("rename", mixed, "-o", theirs / "r.safetensors", "--rule", r"s/^a\./b./"),
    )
    both(
        tenfold.edit_metadata(mixed, ours / "m.safetensors", set={"by": "us"}),
        *("meta", "set", mixed, "by=us", "-o", theirs / "m.safetensors"),
    )
    for name in ("a.zt", "b.zt", "m.safetensors"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes()


@pytest.mark.parametrize(
    "path",
    [
        "pytorch/valid/checkpoint.pt",
        "pytorch/reject/evil_os_system_real.pt",
        "pytorch/reject/evil_legacy.pt",
        "pytorch/reject/pickle_bad_opcode.pt",
        "safetensors/valid/scalars.safetensors",
    ],
)
def test_scans_are_those_of_the_command(path: str) -> None:
    path = f"fixtures/{path}"
    wanted = command("scan", "--json", path)
    found = tenfold.scan(path)
    assert found.to_dict() == wanted
    with open(path, "rb") as file:
        assert tenfold.scan(file) == found
    assert bool(found) == (wanted["verdict"] == "harmless")


def test_hostile_pickles_are_found_and_harmless_ones_are_clean() -> None:
    valid = sorted(Path("fixtures/pytorch/valid").glob("*.pt"))
    evil = sorted(Path("fixtures/pytorch/reject").glob("evil_*.pt"))
    assert len(valid) > 20 and len(evil) > 10
    for path in valid:
        assert tenfold.scan(path).verdict == "harmless", path
    for path in evil:
        assert tenfold.scan(path).verdict == "dangerous", path
    clean = tenfold.scan("fixtures/pytorch/valid/checkpoint.pt")
    assert clean and clean.pickles and not clean.dangerous and not clean.unread
    found = tenfold.scan(Path("fixtures/pytorch/reject/evil_os_system_real.pt").read_bytes())
    assert found.verdict == "dangerous" and repr(found).startswith("<Scan: dangerous")
    first = found.dangerous[0]
    assert (first.module, first.name) in {("posix", "system"), ("os", "system")} and first.could in str(first)
    with pytest.raises(AttributeError):
        found.verdict = "harmless"


def test_what_cannot_be_scanned(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tenfold.scan(tmp_path / "nowhere.pt")
    with pytest.raises(IsADirectoryError):
        tenfold.scan(tmp_path)
    with pytest.raises(tenfold.ArgumentError, match="http"):
        tenfold.scan("http://example.org/model.pt")
    with pytest.raises(TypeError, match="not int"):
        tenfold.scan(7)
    closed = tenfold.scan(b"7z\xbc\xaf\x27\x1c and so on")
    assert not closed and closed.unread and closed.verdict == "unknown"

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        tenfold.scan(Broken(b"something"))


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_an_interrupt_stops_a_scan() -> None:
    members = io.BytesIO()
    with zipfile.ZipFile(members, "w") as archive:
        for n in range(300):
            archive.writestr(f"{n}.pkl", pickle.dumps([n, bytes(20_000)]))

    class Slow(io.BytesIO):
        reads = 0
        interrupts = False

        def read(self, size: int | None = -1) -> bytes:
            self.reads += 1
            if self.interrupts:
                if self.reads == 1:
                    os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.005)
            return super().read(size)

    whole, stopped = Slow(members.getvalue()), Slow(members.getvalue())
    assert tenfold.scan(whole)
    stopped.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        tenfold.scan(stopped)
    assert stopped.reads < whole.reads / 2


def test_results_are_typed_and_frozen(mixed: Path, other: Path) -> None:
    verified = tenfold.verify(mixed)
    assert verified and verified.sound and not verified.errors and verified.notes
    verified.raise_()
    broken = bytearray(mixed.read_bytes())
    broken[0] ^= 0xFF
    unsound = tenfold.verify(bytes(broken))
    assert not unsound and unsound.errors[0].rule.startswith(("safetensors.", "file."))
    with pytest.raises(tenfold.FormatError):
        unsound.raise_()
    digests = tenfold.digest(mixed)
    assert digests["a.bias"] == tenfold.open(mixed)["a.bias"].digest() and len(digests) == 6
    difference = tenfold.diff(mixed, other)
    assert not difference and {change.kind for change in difference.changes} == {"changed", "renamed"}
    assert {change.key for change in difference.metadata} == {"by", "x"}
    assert tenfold.diff(mixed, other, ignore_dtype=True, ignore_metadata=True, atol=2, include="a.*")
    stats = tenfold.stats(mixed)
    weights = tenfold.load(mixed)["a.weight"]
    assert stats["a.weight"].min == weights.min() and stats["a.weight"].zeros == 0 and stats.total.nans == 0
    assert stats["a.bias"].max == 6 and isinstance(stats["a.bias"].max, int)
    alone = tenfold.open(mixed)["a.weight"].stats(bins=5)
    assert len(alone.histogram.counts) == 5 and alone.mean == pytest.approx(float(weights.mean()))
    for result in (verified, digests, difference, stats, alone, tenfold.inspect(mixed)):
        assert "\n" not in repr(result)
        with pytest.raises((AttributeError, TypeError)):
            result.format = 1


def test_merging_splitting_renaming_extracting(mixed: Path, other: Path, tmp_path: Path) -> None:
    with pytest.raises(tenfold.ArgumentError):
        tenfold.merge([mixed, other], tmp_path / "m.safetensors")
    report = tenfold.merge([mixed, other], tmp_path / "m.safetensors", prefer="last")
    assert report.tensors == 7 and report.content
    conflicts = report.to_dict()["conflicts"]
    assert {(row["what"], row["name"]) for row in conflicts} >= {("tensor", "a.bias"), ("metadata", "by")}
    report = tenfold.split(mixed, tmp_path / "parts", by=2)
    assert len(list((tmp_path / "parts").iterdir())) >= 2
    assert tenfold.diff(mixed, tmp_path / "parts", ignore_metadata=True)
    renamed = tenfold.rename(mixed, tmp_path / "r.safetensors", rules={"half": "whole"})
    assert "whole" in tenfold.open(renamed.path) and renamed.to_dict()["renamed"] == {"half": "whole"}
    renamed = tenfold.convert(mixed, tmp_path / "r2.safetensors", rename=[(r"^a\.(\w+)", r"b.\1")])
    assert {"b.weight", "b.bias"} <= set(tenfold.open(renamed.path))
    renamed = tenfold.convert(mixed, tmp_path / "r3.safetensors", rename=str.upper)
    assert "HALF" in tenfold.open(renamed.path)
    for rules in ({"nothing": "x"}, [("nothing", "x")]):
        with pytest.raises(tenfold.ArgumentError, match="nothing"):
            tenfold.rename(mixed, tmp_path / "r4.safetensors", rules=rules)
    extracted = tenfold.extract(mixed, tmp_path / "e.safetensors", ["half"])
    assert list(tenfold.open(extracted.path)) == ["half"]
    with pytest.raises(KeyError):
        tenfold.extract(mixed, tmp_path / "e2.safetensors", ["nothing"])
    report = tenfold.convert(mixed, f"{tmp_path}/npys/", to="npy", allow="dropped")
    assert report.tensors == 6 and len(list((tmp_path / "npys").iterdir())) == 6
    loaded = np.load(tmp_path / "npys" / "half.npy")
    assert (loaded == tenfold.load(mixed)["half"]).all()


def test_editing_metadata(mixed: Path, tmp_path: Path) -> None:
    before = tenfold.digest(mixed)
    report = tenfold.edit_metadata(mixed, set={"x": "y"}, unset=["by"])
    assert dict(tenfold.open(mixed).metadata) == {"x": "y"} and tenfold.digest(mixed) == before
    assert report.to_dict()["changed"] == ["by", "x"]
    with pytest.raises(KeyError):
        tenfold.edit_metadata(mixed, unset=["nothing"])
    with pytest.raises(FileExistsError):
        tenfold.edit_metadata(mixed, mixed, set={"x": "z"}, force=False)
    path = tmp_path / "g.gguf"
    tenfold.save(path, {"w": np.zeros(2, "float32")}, metadata={"n": np.uint32(5), "f": np.float32(1)})
    tenfold.edit_metadata(path, set={"n": 6, "f": 2, "m": np.int8(3)})
    metadata = tenfold.open(path).metadata
    assert metadata.types["n"] == "u32" and metadata.types["f"] == "f32" and metadata.types["m"] == "i8"
    assert metadata["n"] == 6 and metadata["f"] == 2.0
    with pytest.raises(tenfold.ArgumentError, match="no u32"):
        tenfold.edit_metadata(path, set={"n": -1})


def test_progress_counts_all_blocks_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenfold import _frameworks

    path = tmp_path / "big.safetensors"
    tenfold.save(path, {f"t{n}": np.full(1 << 18, n, "float32") for n in range(8)}, sync=False)
    defaults = (*_frameworks.read_blocks.__defaults__[:-1], 2 << 20)
    monkeypatch.setattr(_frameworks.read_blocks, "__defaults__", defaults)
    told: list[tuple[int, int]] = []
    loaded = tenfold.load(path, copy=True, progress=lambda done, total: told.append((done, total)))
    assert all((array == n).all() for n, array in enumerate(loaded.values()))
    assert {total for _, total in told} == {8 << 20} and sorted(told) == told
    assert [done for done, _ in told if done % (2 << 20) == 0][-1] == 8 << 20 and len(told) >= 4
    told.clear()
    assert tenfold.scan(path, progress=lambda done, total: told.append((done, total)))
    assert told and told[-1][0] == told[-1][1]


def test_regions_cover_every_byte(mixed: Path) -> None:
    regions = tenfold.inspect(mixed).regions
    assert regions[0].kind == "header" and regions[0].offset == 0 and regions[0].tensor is None
    ends = [region.offset + region.nbytes for region in regions]
    assert [region.offset for region in regions[1:]] == ends[:-1] and ends[-1] == mixed.stat().st_size
    data = {region.tensor: region for region in regions if region.kind == "data"}
    archive = tenfold.open(mixed)
    assert set(data) == {name for name, tensor in archive.items() if tensor.nbytes}
    for name, region in data.items():
        assert (region.offset, region.nbytes, region.part) == (archive[name].offset, archive[name].nbytes, "values")
    with pytest.warns(tenfold.FormatWarning, match="after the data"):
        gap = tenfold.inspect(FIXTURES / "gguf/valid/bytes_after_data.gguf")
    assert gap.regions[-1].kind == "trailing" and gap.regions[-1].nbytes == 14
    assert [found.rule for found in gap.findings] == ["gguf.trailing"]


def test_progress_is_told_and_stops(tmp_path: Path) -> None:
    path = tmp_path / "big.safetensors"
    tenfold.save(path, {f"t{n}": np.full(8 << 20, n, "float32") for n in range(8)}, sync=False)
    told: list[tuple[int, int]] = []
    tenfold.convert(path, tmp_path / "a.zt", progress=lambda done, total: told.append((done, total)), zstd=3, sync=False)
    assert told and all(0 <= done <= total for done, total in told) and told[-1][0] == told[-1][1] > 0

    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        tenfold.convert(path, tmp_path / "b.zt", progress=stop, zstd=9, sync=False)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.zt", "big.safetensors"]


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_an_interrupt_stops_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "big.safetensors"
    random = np.random.default_rng(1).integers(0, 255, 48 << 20, dtype="uint8")
    tenfold.save(path, {"t": random}, sync=False)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            tenfold.convert(path, tmp_path / "b.zt", zstd=19, sync=False, force=True)
    assert time.monotonic() - start < 60
    assert [found.name for found in tmp_path.iterdir()] == ["big.safetensors"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tenfold.verify(tmp_path / "nowhere.zt")
    with pytest.raises(tenfold.UnrecognizedError):
        tenfold.inspect(b"what is this? nothing that is known")
    assert not tenfold.verify(b"what is this? nothing that is known")
    assert tenfold.is_tensor_file(b"") is None
    (tmp_path / "x.safetensors").write_bytes(b"\xff" * 100)
    assert tenfold.is_tensor_file(tmp_path / "x.safetensors") in (None, "safetensors")
