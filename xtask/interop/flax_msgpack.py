"""flax.serialization: MessagePack of nested dictionaries; with small chunks, so that arrays are cut."""

import ml_dtypes
import numpy as np
from common import Sample, run, samples
from flax import serialization

DTYPES = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
    "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
    "f8_e4m3": ml_dtypes.float8_e4m3fn, "f8_e5m2": ml_dtypes.float8_e5m2, "f8_e8m0": ml_dtypes.float8_e8m0fnu,
    "f8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}  # fmt: skip


def write(kind, path):
    tensors = list(samples(kind.split("-")[0], DTYPES, scalar=True))
    tree = {}
    for t in tensors:
        *groups, last = t.name.split(".")
        place = tree
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = np.frombuffer(t.data, DTYPES[t.dtype]).reshape(t.shape)
    if kind.endswith("-chunked"):
        serialization.MAX_CHUNK_SIZE = 1000
    with open(path, "wb") as file:
        file.write(serialization.msgpack_serialize(tree))
    return tensors, None


def load(path):
    with open(path, "rb") as file:
        tree = serialization.msgpack_restore(file.read())
    tensors = []

    def visit(prefix, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                visit(prefix + [key], inner)
        elif hasattr(value, "dtype"):
            value = np.asarray(value)
            dtype = next(ours for ours, theirs in DTYPES.items() if np.dtype(theirs) == value.dtype)
            tensors.append(Sample(".".join(prefix), dtype, value.shape, value.tobytes()))

    visit([], tree)
    return tensors, None


run(write, load)
