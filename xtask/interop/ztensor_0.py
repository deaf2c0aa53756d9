"""ztensor 0.1.x: dense tensors as numpy arrays, written raw, read raw or compressed."""

import ml_dtypes
import numpy as np
from common import Sample, run, samples
from ztensor import Reader, Writer

DTYPES = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
    "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def write(kind, path):
    tensors = list(samples(kind, DTYPES, scalar=False))
    with Writer(path) as writer:
        for t in tensors:
            writer.add_tensor(t.name, np.frombuffer(t.data, DTYPES[t.dtype]).reshape(t.shape))
    return tensors, {}


def load(path):
    with Reader(path) as reader:
        return [describe(meta, reader.read_tensor(meta.name)) for meta in reader], None


def describe(meta, array):
    dtype = next(ours for ours, theirs in DTYPES.items() if np.dtype(theirs) == array.dtype)
    return Sample(meta.name, dtype, array.shape, array.tobytes())


run(write, load)
