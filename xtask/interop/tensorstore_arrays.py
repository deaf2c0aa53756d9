"""tensorstore: Zarr 2 and 3, with types that zarr-python does not have. It knows arrays and no groups."""

import json
import os

import numpy as np
import tensorstore as ts
from common import Sample, run, samples

NAMES = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "u32": "uint32", "i32": "int32",
    "u64": "uint64", "i64": "int64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2",
    "f8_e4m3fnuz": "float8_e4m3fnuz", "f8_e5m2fnuz": "float8_e5m2fnuz",
}  # fmt: skip
DTYPES = {ours: getattr(ts, theirs).numpy_dtype for ours, theirs in NAMES.items()}


def driver(path, name, is_old):
    return {"driver": "zarr" if is_old else "zarr3", "kvstore": {"driver": "file", "path": os.path.join(path, name) + "/"}}


def write(kind, path):
    tensors = list(samples(kind.split("-")[0], DTYPES, scalar=True))
    for t in tensors:
        spec = driver(path, t.name, kind.endswith("-v2"))
        store = ts.open(spec, dtype=getattr(ts, NAMES[t.dtype]), shape=t.shape, create=True, delete_existing=True).result()
        store.write(np.frombuffer(t.data, DTYPES[t.dtype]).reshape(t.shape)).result()
    return sorted(tensors, key=lambda t: t.name.encode()), None


def load(path):
    found = []
    for directory, _, files in os.walk(path):
        name = os.path.relpath(directory, path)
        is_old = ".zarray" in files
        if not is_old and "zarr.json" in files:
            with open(os.path.join(directory, "zarr.json")) as document:
                if json.load(document)["node_type"] != "array":
                    continue
        elif not is_old:
            continue
        values = ts.open(driver(path, name, is_old), open=True, read=True).result().read().result()
        dtype = next(ours for ours, theirs in DTYPES.items() if theirs == values.dtype)
        found.append(Sample(name.replace(os.sep, "/"), dtype, values.shape, values.tobytes(order="C")))
    return sorted(found, key=lambda t: t.name.encode()), groups(path)


def groups(path):
    """The attributes of the root, which are none of its affairs."""
    for name in (".zattrs", "zarr.json"):
        document = os.path.join(path, name)
        if os.path.exists(document):
            with open(document) as text:
                held = json.load(text)
            return held if name == ".zattrs" else held.get("attributes", {})
    return {}


run(write, load)
