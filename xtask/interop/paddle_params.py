"""Paddle: state dicts as `paddle.save` writes them, by two protocols of pickle."""

import numpy as np
import paddle
from common import METADATA, Sample, run, samples

DTYPES = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    # NumPy has no such floats: Paddle keeps their bits in integers, of which it has no tensors.
    "bf16": np.uint16,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip


def write(kind, path):
    tensors = list(samples(kind.split("-")[0], DTYPES, scalar=True))
    values = {t.name: paddle.to_tensor(np.frombuffer(t.data, DTYPES[t.dtype]).reshape(t.shape)) for t in tensors}
    for t in tensors:
        assert t.dtype != "bf16" or values[t.name].dtype == paddle.bfloat16
    metadata = {} if kind == "basic" else METADATA
    paddle.save({**values, **metadata}, path, protocol=2 if kind.endswith("-2") else 4)
    return tensors, metadata


def load(path):
    tensors, metadata = [], {}
    for name, value in paddle.load(path, return_numpy=True).items():
        if isinstance(value, (np.ndarray, np.generic)):
            dtype = next(ours for ours, theirs in DTYPES.items() if np.dtype(theirs) == value.dtype)
            tensors.append(Sample(name, dtype, value.shape, np.ascontiguousarray(value).tobytes()))
        else:
            metadata[name] = value
    return tensors, metadata


run(write, load)
