"""hdf5storage: MAT-files of 7.3, which are only read."""

import hdf5storage
import numpy as np
from common import run, sample

DTYPES = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
    "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip


def array(t):
    return np.frombuffer(t.data, DTYPES[t.dtype]).reshape(t.shape)


def write(kind, path):
    if kind == "nested":
        tensors = [sample("a", "f32", [3, 4]), sample("b", "i16", [2, 2])]
        a, b = map(array, tensors)
        hdf5storage.savemat(path, {"net": {"layer": {"a": a}, "b": b}}, format="7.3")
        return [t._replace(name=name) for t, name in zip(tensors, ["net.layer.a", "net.b"])], None
    shape = [400, 300] if kind == "large" else [4, 5]
    tensors = [sample("t_" + dtype, dtype, shape) for dtype in DTYPES]
    hdf5storage.savemat(path, {t.name: array(t) for t in tensors}, format="7.3")
    return tensors, None


run(write, None)
