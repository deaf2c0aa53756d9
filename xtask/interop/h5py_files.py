"""h5py: datasets in one piece, in compressed chunks, and in the newest form of the library.

What is loaded is also given to h5dump, where that is installed: another release of the HDF5 library.
"""

import shutil
import subprocess
import sys

import h5py
import numpy as np
from common import METADATA, Sample, run, samples

DTYPES = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
    "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip


def write(kind, path):
    tensors = list(samples(kind.split("-")[0], DTYPES, scalar=True))
    version = "latest" if kind.endswith("-latest") else "earliest"
    with h5py.File(path, "w", libver=version) as file:
        for n, t in enumerate(tensors):
            values = np.frombuffer(t.data, DTYPES[t.dtype]).reshape(t.shape)
            options = {}
            if kind.endswith("-chunked") and values.size > 1:
                options = {
                    "chunks": tuple(max(1, d // 2) for d in t.shape),
                    "compression": ["gzip", "lzf", None][n % 3],
                    "shuffle": n % 2 == 0,
                    "fletcher32": n % 4 == 0,
                }
            file.create_dataset(t.name, data=values, **options)
        for key, value in METADATA.items():
            file.attrs[key] = value
    return sorted(tensors, key=lambda t: t.name.encode()), METADATA


def load(path):
    dump = shutil.which("h5dump")
    if dump:
        subprocess.run([dump, path], check=True, stdout=subprocess.DEVNULL)
    else:
        print("h5dump is not installed, and did not look at " + path, file=sys.stderr)
    tensors = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, found: tensors.append(describe(name, found)) if isinstance(found, h5py.Dataset) else None)
        metadata = {key: plain(value) for key, value in file.attrs.items()}
    return tensors, metadata


def plain(value):
    if isinstance(value, h5py.Empty):
        return {"empty": "object" if value.dtype.kind in "OS" else value.dtype.name}
    if isinstance(value, np.ndarray):
        return [plain(entry) for entry in value]
    value = value.item() if isinstance(value, np.generic) else value
    # Text of a fixed length is bytes to h5py.
    return value.decode() if isinstance(value, bytes) else value


def describe(name, dataset):
    kind = dataset.id.get_type()
    exponent = kind.get_fields()[2] if isinstance(kind, h5py.h5t.TypeFloatID) else 0
    dtype = {(2, 8): "bf16", (1, 4): "f8_e4m3", (1, 5): "f8_e5m2"}.get((kind.get_size(), exponent))
    if dtype:
        # NumPy has no such type, and h5py makes f32 of it: the bytes as they are.
        raw = np.empty(dataset.shape, "V%d" % kind.get_size())
        dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=kind)
        return Sample(name, dtype, dataset.shape, raw.tobytes())
    values = np.asarray(dataset[()])
    plain = values.astype(values.dtype.newbyteorder("<"))
    dtype = next(ours for ours, theirs in DTYPES.items() if np.dtype(theirs) == plain.dtype)
    return Sample(name, dtype, plain.shape, plain.tobytes(order="C"))


run(write, load)
