"""numpy with ml_dtypes: one array in a .npy, or several in a .npz, loaded as everybody does it, without pickle.

The kinds of .npz are those that all programs have, `full-deflated` by savez_compressed, and `full-orders` with the other
byte order and Fortran's order of elements. A .npy has one array of the type or the form that its kind names.
"""

import os

import ml_dtypes
import numpy as np
from common import Sample, run, sample, samples

DTYPES = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
    "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip

# Kinds of .npy that are no types: the type and the shape.
FORMS = {
    "big": ("f64", [3, 4, 5]),
    "fortran": ("i16", [7, 5, 3, 2]),
    "fortran-big": ("c64", [5, 6]),
    "scalar": ("f32", []),
    "vector": ("u16", [1000]),
    "empty": ("f32", [3, 0, 2]),
    "large": ("f32", [1031, 1033]),
}


def write(kind, path):
    if path.endswith(".npy"):
        dtype, shape = FORMS.get(kind, (kind, [4, 5]))
        t = sample(stem(path), dtype, shape)
        np.save(path, as_written(array(t), kind), allow_pickle=False)
        return [t], None
    tensors = list(samples(kind.split("-")[0], DTYPES, scalar=True))
    save = np.savez_compressed if kind.endswith("-deflated") else np.savez
    save(path, **{t.name: as_written(array(t), "fortran-big" if kind.endswith("-orders") else "") for t in tensors})
    return tensors, None


def array(t):
    return np.frombuffer(t.data, DTYPES[t.dtype]).reshape(t.shape)


def as_written(values, form):
    """The same values, in another order of bytes or of elements."""
    # ml_dtypes has one order of bytes.
    if "big" in form and values.dtype != ml_dtypes.bfloat16:
        values = values.astype(values.dtype.newbyteorder(">"))
    return np.asarray(values, order="F") if "fortran" in form else values


def load(path):
    loaded = np.load(path)
    if path.endswith(".npy"):
        return [describe(stem(path), loaded)], None
    with loaded as file:
        return [describe(name, file[name]) for name in file.files], None


def describe(name, values):
    if values.dtype == np.dtype("V2"):
        values = values.view(ml_dtypes.bfloat16)
    plain = values.astype(values.dtype.newbyteorder("<")) if values.dtype.byteorder == ">" else values
    dtype = next(ours for ours, theirs in DTYPES.items() if np.dtype(theirs) == plain.dtype)
    return Sample(name, dtype, plain.shape, plain.tobytes(order="C"))


def stem(path):
    return os.path.basename(path).rsplit(".", 1)[0]


run(write, load)
