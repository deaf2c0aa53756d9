"""Every golden file through NumPy: the numbers are compared with what was written beside it."""

from __future__ import annotations

import hashlib
import math
import warnings

import numpy as np
import pytest
from conftest import golden

import tenfold

VALID = list(golden("valid"))
REJECT = list(golden("reject"))
#: NumPy has no such numbers.
WITHOUT_NUMPY = {"u128", "i128", "f128", "f128x2"}


def little(array: np.ndarray) -> bytes:
    """The bytes that digests are made of."""
    array = np.ascontiguousarray(array)
    return array.astype(array.dtype.newbyteorder("<")).tobytes() if array.dtype.itemsize > 1 else array.tobytes()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(params=[True, False], ids=["mapped", "read"])
def mmap(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.mark.parametrize(("path", "expected"), [case[1:] for case in VALID], ids=[case[0] for case in VALID])
def test_numbers_are_the_golden_ones(path, expected, mmap) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tenfold.FormatWarning)
        archive = tenfold.open(path, mmap=mmap)
    assert archive.format == expected["format"]
    assert {tensor["name"] for tensor in expected["tensors"]} == set(archive)
    assert len(archive) == len(expected["tensors"])
    compared = 0
    for wanted in expected["tensors"]:
        tensor = archive[wanted["name"]]
        if "unreadable" in wanted:
            # It is there, and reading it says why not.
            with pytest.raises(tenfold.UnsupportedError):
                tensor.numpy()
            continue
        assert list(tensor.shape) == wanted["shape"]
        if wanted.get("sha256"):
            assert tensor.digest() == wanted["sha256"]
            compared += 1
        for place, part in enumerate(tensor.parts):
            said = (wanted.get("parts") or {}).get("data" if part.role == "values" else part.role)
            if said and part.encoding == "raw" and part.byteorder == "little":
                assert sha256(bytes(memoryview(tensor._part(place)))) == said["sha256"]
        if tensor.dtype.kind == "opaque" or tensor.dtype.code in WITHOUT_NUMPY or tensor.ndim > 64:
            continue
        array = tensor.numpy()
        assert not (mmap and tensor.is_zero_copy and array.size and array.flags.writeable)
        if tensor.dtype.kind == "quantized":
            assert array.shape == tensor.shape
            if "dequantized_sha256_f32" in wanted:
                assert sha256(little(array)) == wanted["dequantized_sha256_f32"]
            continue
        if "quant" in wanted:
            continue
        if wanted.get("sha256") and tensor.dtype.bits >= 8:
            assert sha256(little(array)) == wanted["sha256"]
        values = wanted.get("values")
        if values and tensor.dtype.kind in ("uint", "int", "float") and array.size == len(values):
            same_values(array, values)
        copy = tensor.numpy(copy=True)
        assert copy.flags.writeable or not copy.size
        assert copy.dtype.isnative
        assert (
            copy.reshape(-1).view(np.uint8).tobytes()
            == np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).reshape(-1).view(np.uint8).tobytes()
        )
    known = [tensor for tensor in expected["tensors"] if tensor.get("sha256") and "unreadable" not in tensor]
    assert compared == len(known)


def same_values(array: np.ndarray, values: list) -> None:
    for found, value in zip(array.reshape(-1).tolist(), values, strict=True):
        if isinstance(value, str):
            text = value.lower()
            if "nan" in text:
                assert math.isnan(float(found))
            elif "inf" in text:
                assert math.isinf(float(found))
            continue
        if value is None:
            continue
        assert float(found) == float(value) or found == value


@pytest.mark.parametrize(("path", "expected"), [case[1:] for case in REJECT], ids=[case[0] for case in REJECT])
def test_what_is_wrong_is_an_exception(path, expected) -> None:
    """Opening, reading or verifying raises, and the rule is the golden one."""
    rules = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tenfold.FormatWarning)
        try:
            archive = tenfold.open(path)
        except (tenfold.Error, OSError) as error:
            rules.add(getattr(error, "rule", None))
            if isinstance(error, tenfold.Error):
                assert str(error)
                assert "--" not in str(error.hint)
            else:
                rules.update(note.rpartition("[")[2].rstrip("]") for note in error.__notes__)
        else:
            for tensor in archive.values():
                try:
                    tensor.tobytes()
                except tenfold.Error as error:
                    rules.add(error.rule)
                except OSError as error:
                    rules.update(note.rpartition("[")[2].rstrip("]") for note in error.__notes__)
            found = tenfold.verify(archive, strict=True)
            rules.update(finding.rule for finding in (*found.findings, *archive.findings))
    wanted = expected["rule"]
    wanted = {wanted} if isinstance(wanted, str) else set(wanted)
    assert rules & wanted, (rules, wanted)


def test_all_golden_files_are_here() -> None:
    assert len(VALID) > 400
    assert len(REJECT) > 600
