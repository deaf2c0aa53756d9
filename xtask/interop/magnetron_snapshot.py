"""magnetron 0.1.5 to 0.1.9: `Snapshot`, tensors without metadata."""

import ctypes

import magnetron
from common import Sample, run, samples

NAMES = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "bool": "boolean",
    "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "u32": "uint32", "i32": "int32", "u64": "uint64",
    "i64": "int64",
}  # fmt: skip
# The 8-bit float came with 0.1.7.
DTYPES = {ours: getattr(magnetron.dtype, name) for ours, name in NAMES.items() if hasattr(magnetron.dtype, name)}


def write(kind, path):
    tensors = list(samples(kind, DTYPES, scalar=True))
    with magnetron.Snapshot.write(path) as snapshot:
        for t in tensors:
            tensor = magnetron.Tensor.empty(t.shape, dtype=DTYPES[t.dtype])
            ctypes.memmove(tensor.data_ptr_mut, t.data, len(t.data))
            snapshot.put_tensor(t.name, tensor)
    return tensors, {}


def load(path):
    with magnetron.Snapshot.read(path) as snapshot:
        return [describe(name, snapshot.get_tensor(name)) for name in snapshot.tensor_keys()], None


def describe(name, tensor):
    dtype = next(ours for ours, theirs in DTYPES.items() if int(theirs) == int(tensor.dtype))
    return Sample(name, dtype, tensor.shape, ctypes.string_at(tensor.data_ptr, tensor.numbytes))


run(write, load)
