"""safetensors 0.8 with numpy: every type of the format, one file or several behind an index."""

import json
import os

import ml_dtypes
import numpy as np
from common import METADATA, Sample, run, samples
from safetensors import deserialize, safe_open
from safetensors.numpy import load_file, save_file

DTYPES = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
    "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "f8_e4m3": ml_dtypes.float8_e4m3fn,
    "f8_e5m2": ml_dtypes.float8_e5m2, "f8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f8_e8m0": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip

# Types that numpy has no arrays of.
OTHERS = {"F4": "f4_e2m1", "F6_E2M3": "f6_e2m3", "F6_E3M2": "f6_e3m2"}


def write(kind, path):
    tensors = list(samples(kind, DTYPES, scalar=True))
    arrays = {t.name: np.frombuffer(t.data, DTYPES[t.dtype]).reshape(t.shape) for t in tensors}
    # Metadata is text here; formats that have none are given a file without.
    metadata = {} if kind == "basic" else {key: json.dumps(value) for key, value in METADATA.items()}
    save_file(arrays, path, metadata or None)
    return tensors, metadata


def load(path):
    if os.path.exists(path):
        return load_one(path)
    # Several files, found as the libraries on top of safetensors do it.
    with open(path + ".index.json") as file:
        weight_map = json.load(file)["weight_map"]
    tensors, metadata = [], {}
    for shard in sorted(set(weight_map.values())):
        found, metadata = load_one(os.path.join(os.path.dirname(path), shard))
        assert {t.name for t in found} == {name for name, of in weight_map.items() if of == shard}
        tensors += found
    return tensors, metadata


def load_one(path):
    with safe_open(path, framework="np") as file:
        metadata = file.metadata() or {}
    with open(path, "rb") as file:
        raw = deserialize(file.read())
    arrays = {} if any(view["dtype"] in OTHERS for _, view in raw) else load_file(path)
    return [describe(name, view, arrays.get(name)) for name, view in raw], metadata


def describe(name, view, array):
    data = bytes(view["data"])
    if array is None:
        return Sample(name, OTHERS.get(view["dtype"]), view["shape"], data)
    dtype = next(ours for ours, theirs in DTYPES.items() if np.dtype(theirs) == array.dtype)
    assert array.tobytes() == data
    return Sample(name, dtype, array.shape, data)


run(write, load)
