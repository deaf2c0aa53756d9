"""magnetron 0.2.x: `snapshot.SnapshotWriter` and `snapshot.deserialize`, tensors and any JSON as metadata."""

import ctypes

from common import METADATA, Sample, run, samples
from magnetron import dtype
from magnetron.snapshot import SnapshotWriter, deserialize

DTYPES = {
    "f32": dtype.float32, "f16": dtype.float16, "bf16": dtype.bfloat16, "f8_e4m3": dtype.float8_e4m3fn,
    "bool": dtype.boolean, "u8": dtype.uint8, "i8": dtype.int8, "u16": dtype.uint16, "i16": dtype.int16,
    "u32": dtype.uint32, "i32": dtype.int32, "u64": dtype.uint64, "i64": dtype.int64,
}  # fmt: skip
TREE = {"note": "naïve 漢字", "none": None, "list": [1, [2.5, True], {}], "map": {"a": {"b": ""}}}


def write(kind, path):
    tensors = list(samples(kind, DTYPES, scalar=True))
    metadata = METADATA if kind == "basic" else METADATA | TREE
    with SnapshotWriter(path, metadata) as writer:
        for t in tensors:
            writer.declare(t.name, t.shape, DTYPES[t.dtype])
        for t in tensors:
            writer.write(t.name, t.data)
    return tensors, metadata


def load(path):
    tensors, metadata = deserialize(path)
    return [describe(name, tensor) for name, tensor in tensors.items()], metadata


def describe(name, tensor):
    dtype = next(ours for ours, theirs in DTYPES.items() if theirs == tensor.dtype)
    data = ctypes.string_at(tensor.data_ptr, tensor.numbytes) if tensor.numbytes else b""
    return Sample(name, dtype, tensor.shape, data)


run(write, load)
