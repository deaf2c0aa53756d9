"""What functions take: advice names arguments that they have, and what would have no effect is an error."""

from __future__ import annotations

import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import tenfold
from tenfold import _convert, _tenfold

OPENS = ["open", "load", "loads", "load_model", "inspect", "verify", "digest", "diff", "stats", "convert"]
WRITES = ["convert", "save", "dumps", "rename", "extract", "merge", "split", "edit_metadata"]


def taken(name: str) -> set[str]:
    """All arguments that a function takes, those that it gives on too."""
    parameters = inspect.signature(getattr(tenfold, name)).parameters
    more = {one.name for one in parameters.values() if one.kind is inspect.Parameter.VAR_KEYWORD}
    own = set(parameters) - more
    if name == "loads":
        return own | taken("load")
    if "open_options" in more:
        return own | set(inspect.signature(tenfold.open).parameters)
    if "options" in more:
        return own | (_convert._WRITING - ({"shard_size"} if name == "split" else set()))
    return own


@pytest.mark.parametrize(
    ("name", "is_writing"), [(name, False) for name in [*OPENS, ""]] + [(name, True) for name in [*WRITES, ""]]
)
def test_advice_names_arguments_that_there_are(name: str, is_writing: bool) -> None:
    said = _tenfold.hints(name, is_writing)
    # No two hints for checksums where they are what is asked about.
    assert len(said) == 26 - (name == "verify")
    for words in said:
        named = re.search(r"tenfold\.([a-z_]+)\(", words)
        function = named[1] if named else name
        outer = re.sub(r"tenfold\.Limits\((\w+)=[^)]*\)", "…", words)
        arguments = re.findall(r"\b([a-z_]+)=", outer)
        if arguments:
            assert function and set(arguments) <= taken(function), words
        for limit in re.findall(r"tenfold\.Limits\((\w+)=", words):
            assert limit in inspect.signature(tenfold.Limits).parameters


def test_advice_is_for_the_function_that_was_called(tmp_path: Path) -> None:
    numbers = {"w": np.zeros((2, 2), "complex64")}
    with pytest.raises(tenfold.LossError) as refused:
        tenfold.save(tmp_path / "x.gguf", numbers)
    words = " ".join(loss.why for loss in refused.value.losses) + str(refused.value.hint)
    assert 'format="' in words and "to=" not in words
    tenfold.save(tmp_path / "x.npz", numbers)
    with pytest.raises(tenfold.LossError) as refused:
        tenfold.convert(tmp_path / "x.npz", tmp_path / "x.gguf")
    words = " ".join(loss.why for loss in refused.value.losses) + str(refused.value.hint)
    assert 'to="' in words and "format=" not in words
    with pytest.raises(tenfold.ArgumentError, match="; to= says which"):
        tenfold.convert([tmp_path / "x.npz", "fixtures/safetensors/valid/scalars.safetensors"], tmp_path / "x.unknown")
    with pytest.raises(tenfold.ArgumentError, match="; format= says which"):
        tenfold.save(tmp_path / "x.unknown", numbers)


def test_limits_are_advised_where_they_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "deep.npy"
    np.save(path, np.zeros((1,) * 9))
    few = tenfold.Limits(rank=8)
    for read in (tenfold.open, tenfold.load, tenfold.digest):
        with pytest.raises(tenfold.LimitError) as caught:
            read(path, limits=few)
        assert caught.value.hint.startswith("limits=tenfold.Limits(rank="), caught.value.hint


@pytest.mark.parametrize("name", ["load", "inspect", "verify", "digest", "stats", "convert"])
def test_what_is_about_opening_is_refused_for_what_is_open(name: str, mixed: Path, tmp_path: Path) -> None:
    archive = tenfold.open(mixed)
    rest = (tmp_path / "x.zt",) if name == "convert" else ()
    with pytest.raises(TypeError, match="mmap="):
        getattr(tenfold, name)(archive, *rest, mmap=False)
    with pytest.raises(TypeError, match="mmpa"):
        getattr(tenfold, name)(archive, *rest, mmpa=False)
    with pytest.raises(TypeError, match="mmpa"):
        getattr(tenfold, name)(mixed, *rest, mmpa=False)
    getattr(tenfold, name)(mixed, *rest, mmap=False)
    assert list(tmp_path.glob("x.*")) == [*rest]


def test_unknown_arguments_of_what_writes(mixed: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.safetensors"
    calls = {
        "rename": lambda **more: tenfold.rename(mixed, out, rules={"half": "h"}, **more),
        "extract": lambda **more: tenfold.extract(mixed, out, ["half"], **more),
        "merge": lambda **more: tenfold.merge([mixed], out, **more),
        "split": lambda **more: tenfold.split(mixed, tmp_path / "parts", by=2, **more),
        "edit_metadata": lambda **more: tenfold.edit_metadata(mixed, out, set={"a": "b"}, **more),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'verson'"):
            call(verson="1")
        call(dry_run=True, sync=False, allow="dropped", storage_options={"anonymous": True})
    with pytest.raises(TypeError, match="shard_size"):
        calls["split"](shard_size="1MB")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["mixed.safetensors"]


def test_devices_and_copies_are_for_those_that_have_them(mixed: Path) -> None:
    assert len(tenfold.load(mixed, device="cpu")) == 6
    with pytest.raises(tenfold.ArgumentError, match="device= is for torch and jax"):
        tenfold.load(mixed, device="cuda")
    for framework in ("jax", "tensorflow", "mlx"):
        with pytest.raises(tenfold.ArgumentError, match="copy= is for numpy and torch"):
            tenfold.load(mixed, framework=framework, copy=True)
    with pytest.raises(tenfold.ArgumentError, match="not 'numpi'"):
        tenfold.load(mixed, framework="numpi")


def test_warnings_point_at_who_opened(tmp_path: Path) -> None:
    path = next(
        path
        for path in sorted(Path("fixtures").glob("*/valid/*"))
        if path.is_file() and path.suffix not in (".json",) and has_warning(path)
    )
    for read in (tenfold.open, tenfold.load, tenfold.digest, tenfold.inspect):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read(path)
        assert [warning.filename for warning in caught if warning.category is tenfold.FormatWarning] == [__file__]


def has_warning(path: Path) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            archive = tenfold.open(path)
        except (tenfold.Error, OSError):
            return False
        return any(found.severity == "warning" for found in archive.findings) and all(
            tensor.defect is None and tensor.dtype.kind in ("float", "int") for tensor in archive.values()
        )
