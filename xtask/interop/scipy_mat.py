"""scipy.io: MAT-files of levels 4 and 5, with structures, cells, sparse matrices and text.

`basic` and `full` are level 5; `full-compressed` has every variable in a zlib stream, `four` is level 4, `sparse` has sparse
matrices, and `nested` structures and cells.
"""

import numpy as np
from common import Sample, run, sample
from scipy import sparse
from scipy.io import loadmat, savemat, whosmat
from scipy.io.matlab import mat_struct

DTYPES = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
    "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
# Level 4 has no others.
FOUR = ["u8", "u16", "i16", "i32", "f32", "f64", "c128"]


def array(t):
    return np.frombuffer(t.data, DTYPES[t.dtype]).reshape(t.shape)


def write(kind, path):
    text = {"note": "größe α"}
    if kind == "basic":
        tensors = [sample("embed", "f32", [96, 64]), sample("mask", "bool", [1, 31]), sample("count", "i32", [2, 3, 5])]
    elif kind == "four":
        tensors = [sample("t_" + dtype, dtype, [4, 5]) for dtype in FOUR]
        text = {"note": "plain"}
    elif kind == "sparse":
        dense = np.zeros((7, 5))
        dense[[0, 3, 6], [1, 1, 4]] = [1.5, -2, 0.25]
        arrays = {"s": dense, "z": dense * (1 + 2j), "none": np.zeros((7, 5))}
        savemat(path, {name: sparse.csc_matrix(values) for name, values in arrays.items()})
        return [describe(name, values, values.dtype == np.bool_) for name, values in arrays.items()], {}
    elif kind == "nested":
        tensors = [sample("a", "f32", [3, 4]), sample("b", "i16", [2, 2]), sample("c", "f64", [1, 7])]
        a, b, c = map(array, tensors)
        cell = np.empty((1, 2), object)
        cell[0, 0], cell[0, 1] = b, {"w": c}
        savemat(path, {"net": {"layer": {"a": a}, "cells": cell}})
        names = ["net.layer.a", "net.cells.0", "net.cells.1.w"]
        return [t._replace(name=name) for t, name in zip(tensors, names)], {}
    else:
        tensors = [sample("t_" + dtype, dtype, [4, 5]) for dtype in DTYPES]
        tensors += [sample("rank_%d" % rank, "i32", [3, 1, 2, 1, 2, 2][:rank]) for rank in range(2, 7)]
    values = {t.name: array(t) for t in tensors}
    savemat(path, {**values, **text}, format="4" if kind == "four" else "5", do_compression="compressed" in kind)
    return tensors, text


def load(path):
    tensors, metadata = [], {}

    def visit(name, value):
        if isinstance(value, mat_struct):
            for field in value._fieldnames:
                visit(name + "." + field, getattr(value, field))
        elif sparse.issparse(value):
            tensors.append(describe(name, value.toarray(), name in logical))
        elif value.dtype == object:
            entries = value.flatten(order="F")
            only = len(entries) == 1 and isinstance(entries[0], mat_struct) and name not in cells
            for n, entry in enumerate(entries):
                # A structure comes as an array of one.
                visit(name if only else "%s.%d" % (name, n), entry)
        elif value.dtype.kind == "U":
            rows = [str(row) for row in value]
            metadata[name] = rows[0] if len(rows) == 1 else rows or ""
        else:
            tensors.append(describe(name, value, name in logical))

    cells = cells_of(path)
    # Loading forgets what was logical.
    logical = {name for name, _, kind in whosmat(path) if kind == "logical"}
    # Text of 16 bits is cut to 8 unless the codec is said.
    for name, value in loadmat(path, struct_as_record=False, chars_as_strings=True, uint16_codec="utf-16-le").items():
        if not name.startswith("__"):
            visit(name, value)
    return tensors, metadata


def cells_of(path):
    """The names of cells: without records, an entry that is a structure and a structure look the same."""
    found = set()

    def visit(name, value):
        if isinstance(value, np.ndarray) and value.dtype.names:
            for n, entry in enumerate(value.flatten(order="F")):
                for field in value.dtype.names:
                    visit((name if value.size == 1 else "%s.%d" % (name, n)) + "." + field, entry[field])
        elif isinstance(value, np.ndarray) and value.dtype == object:
            found.add(name)
            for n, entry in enumerate(value.flatten(order="F")):
                visit("%s.%d" % (name, n), entry)

    for name, value in loadmat(path).items():
        visit(name, value)
    return found


def describe(name, values, is_logical):
    plain = values.astype(values.dtype.newbyteorder("<"))
    if is_logical:
        plain = plain.astype(np.bool_)
    dtype = next(ours for ours, theirs in DTYPES.items() if np.dtype(theirs) == plain.dtype)
    return Sample(name, dtype, plain.shape, plain.tobytes(order="C"))


run(write, load)
