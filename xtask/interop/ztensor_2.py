"""ztensor 2.x: any part of any layout as bytes, with metadata of the file.

The kinds it writes are `basic`, `full` and `sparse`, with `-zstd`, `-align` or `-canonical` behind them. Loading a
file begins with the package's own deep verification of it.
"""

import ztensor
from common import METADATA, Sample, run, samples
from sparse import Part, canonical, sparse_samples

# Ours -> (stored type, the logical type above it).
DTYPES = {name: (name, None) for name in "u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64".split()} | {
    "bool": ("u8", "bool"),
    "f8_e4m3": ("u8", "f8_e4m3fn"),
    "f8_e5m2": ("u8", "f8_e5m2"),
    "f8_e4m3fnuz": ("u8", "f8_e4m3fnuz"),
    "f8_e5m2fnuz": ("u8", "f8_e5m2fnuz"),
    "f8_e8m0": ("u8", "f8_e8m0"),
    "f4_e2m1": ("u8", "f4_e2m1"),
    "c64": ("f32", "complex64"),
    "c128": ("f64", "complex128"),
}


def write(kind, path):
    kind, *options = kind.split("-")
    encoding = "zt.zstd-seekable/1" if "zstd" in options else None
    align = 4096 if "align" in options or "zstd" in options else None
    tensors = []
    with ztensor.Writer(path, canonical="canonical" in options, align=align) as writer:
        writer.set_attributes(METADATA)
        # Canonical files take their tensors in the order of their names.
        for name, shape, layout, parts, sample in sorted(objects(kind, encoding), key=lambda o: o[0].encode()):
            writer.add_object(name, shape, parts, layout=layout)
            tensors.append(sample)
    return tensors, METADATA


def objects(kind, encoding):
    if kind == "sparse":
        for s in sparse_samples():
            stored = {role: "f32" if role == "values" else "u64" for role in s.parts}
            parts = {r: {"data": a.tobytes(), "dtype": stored[r], "encoding": encoding} for r, a in s.parts.items()}
            yield s.name, s.shape, "zt.%s/1" % s.layout, parts, s.dense
        return
    for t in samples(kind, DTYPES, scalar=True):
        stored, logical = DTYPES[t.dtype]
        parts = {"data": {"data": t.data, "dtype": stored, "logical": logical, "encoding": encoding}}
        yield t.name, t.shape, "dense", parts, t


def load(path):
    ztensor.verify(path, deep=True)
    with ztensor.open(path) as source:
        return [describe(tensor) for tensor in source.values()], source.attributes or {}


def describe(tensor):
    handles = {role: tensor[role] for role in tensor.parts}
    parts = {role: Part(handle.tobytes(), int(handle.dtype.lstrip("bfiu")) // 8) for role, handle in handles.items()}
    dtype = None
    if tensor.layout in ("dense", "zt.sparse_csr/1", "zt.sparse_coo/1"):
        values = handles.get("values") or handles["data"]
        dtype = next(ours for ours, theirs in DTYPES.items() if theirs == (values.dtype, values.logical))
    return Sample(tensor.name, dtype, tensor.shape, canonical(tensor.layout, tensor.shape, parts))


run(write, load)
