"""zarr-python 2 and 3: stores in directories and in zip archives, with compressed chunks, and in shards."""

import json
import os

import numpy as np
import zarr
from common import METADATA, Sample, run, samples

DTYPES = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
    "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
IS_OLD = zarr.__version__.startswith("2.")


def write(kind, path):
    tensors = list(samples(kind.split("-")[0], DTYPES, scalar=True))
    if kind.endswith("-zip"):
        store = zarr.ZipStore(path, mode="w") if IS_OLD else zarr.storage.ZipStore(path, mode="w")
    else:
        store = path
    # In an archive nothing can be written anew: attributes are there from the beginning.
    options = {} if IS_OLD else {"zarr_format": 2 if kind.endswith("-v2") else 3, "attributes": METADATA}
    root = zarr.open_group(store, mode="w", **options)
    if IS_OLD:
        root.attrs.update(METADATA)
    for t in tensors:
        values = np.frombuffer(t.data, DTYPES[t.dtype]).reshape(t.shape)
        chunks = tuple(max(1, d // 2) for d in t.shape)
        if IS_OLD:
            root.create_dataset(t.name, data=values, chunks=chunks)
        elif kind.endswith("-shards") and values.ndim and values.size:
            root.create_array(t.name, shape=t.shape, dtype=values.dtype, chunks=chunks, shards=tuple(c * 2 for c in chunks))
            root[t.name][...] = values
        else:
            root.create_array(t.name, data=values, chunks=chunks)
    if hasattr(store, "close"):
        store.close()
    return sorted(tensors, key=lambda t: t.name.encode().split(b"/")), METADATA


def load(path):
    root = zarr.open_group(path, mode="r")
    tensors = []
    visit(root, "", tensors)
    return tensors, {key: value for key, value in dict(root.attrs).items() if not isinstance(value, (dict, list))}


def visit(group, prefix, tensors):
    for name in sorted(group.keys(), key=str.encode):
        node = group[name]
        if isinstance(node, zarr.Group):
            visit(node, prefix + name + "/", tensors)
            continue
        values = np.asarray(node[...])
        plain = values.astype(values.dtype.newbyteorder("<"))
        dtype = next(ours for ours, theirs in DTYPES.items() if np.dtype(theirs) == plain.dtype)
        tensors.append(Sample(prefix + name, dtype, plain.shape, plain.tobytes(order="C")))


run(write, load)
