"""ztensor 1.2.x: dense and sparse tensors, raw or compressed, with or without checksums.

The kinds it writes are `basic` and `full` with `-zstd`, `-crc32c` and `-sha256` behind them in any combination, and
`sparse`. Its reader has no way to ask for the metadata of the file.
"""

import ml_dtypes
import numpy as np
import ztensor
from common import Sample, run, samples
from sparse import Part, canonical, sparse_samples

# Ours -> (type of the stored elements, the logical type above it).
DTYPES = {
    "bool": (np.bool_, None), "u8": (np.uint8, None), "i8": (np.int8, None), "u16": (np.uint16, None),
    "i16": (np.int16, None), "u32": (np.uint32, None), "i32": (np.int32, None), "u64": (np.uint64, None),
    "i64": (np.int64, None), "f16": (np.float16, None), "bf16": (ml_dtypes.bfloat16, None),
    "f32": (np.float32, None), "f64": (np.float64, None), "f8_e4m3": (np.uint8, "f8_e4m3fn"),
    "f8_e5m2": (np.uint8, "f8_e5m2"), "f8_e4m3fnuz": (np.uint8, "f8_e4m3fnuz"),
    "f8_e5m2fnuz": (np.uint8, "f8_e5m2fnuz"), "c64": (np.float32, "complex64"), "c128": (np.float64, "complex128"),
}  # fmt: skip


def write(kind, path):
    kind, *options = kind.split("-")
    compress = "zstd" in options
    checksum = next((o for o in options if o != "zstd"), "none")
    tensors = []
    with ztensor.Writer(path) as writer:
        for name, object, sample in objects(kind):
            writer.write(name, object, compress=compress, checksum=checksum)
            tensors.append(sample)
    return tensors, {}


def objects(kind):
    if kind == "sparse":
        for s in sparse_samples():
            yield s.name, ztensor.Tensor(s.parts, shape=s.shape, dtype="float32", format=s.layout), s.dense
        return
    for t in samples(kind, DTYPES, scalar=True):
        stored, logical = DTYPES[t.dtype]
        data = np.frombuffer(t.data, stored)
        yield t.name, ztensor.Tensor({"data": data}, shape=t.shape, dtype=data.dtype.name, type=logical), t


def load(path):
    reader = ztensor.Reader(path)
    return [describe(reader, name) for name in reader.keys()], None


def describe(reader, name):
    meta = reader.metadata(name)
    parts = {}
    for role, component in meta.components.items():
        # The way `read` fetches a component; `read` itself then fails on complex numbers, which it reshapes to the
        # logical shape although they have two stored elements each.
        data, stored = reader._inner._read_component_raw(name, role)
        parts[role] = Part(data.tobytes(), np.dtype(stored).itemsize)
    dtype = None
    if meta.format in ("dense", "sparse_csr", "sparse_coo"):
        stored = (meta.dtype, meta.type)
        named = (ours for ours, (element, type) in DTYPES.items() if (np.dtype(element).name, type) == stored)
        dtype = next(named, None)  # the package passes types through that it has never heard of
    return Sample(name, dtype, meta.shape, canonical(meta.format, meta.shape, parts))


run(write, load)
