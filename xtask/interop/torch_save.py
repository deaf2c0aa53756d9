"""torch: state dicts as archives and as streams, one file or several behind an index."""

import inspect
import json
import os

import torch
from common import METADATA, Sample, run, samples

NAMES = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "u32": "uint32", "i32": "int32",
    "u64": "uint64", "i64": "int64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2",
    "f8_e4m3fnuz": "float8_e4m3fnuz", "f8_e5m2fnuz": "float8_e5m2fnuz", "f8_e8m0": "float8_e8m0fnu",
    "f4_e2m1": "float4_e2m1fn_x2",
}  # fmt: skip
# Older releases have fewer.
DTYPES = {ours: getattr(torch, theirs) for ours, theirs in NAMES.items() if hasattr(torch, theirs)}
# A stream has no types without a class of storages.
IN_STREAMS = {
    "bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128",
}  # fmt: skip
OPTIONS = inspect.signature(torch.load).parameters


def write(kind, path):
    stream = kind == "stream"
    known = [dtype for dtype in DTYPES if dtype != "f4_e2m1" and (not stream or dtype in IN_STREAMS)]
    tensors = list(samples("basic" if kind == "basic" else "full", known, scalar=True))
    values = {t.name: tensor(t) for t in tensors}
    metadata = {} if kind == "basic" else METADATA
    torch.save({**values, **metadata}, path, _use_new_zipfile_serialization=not stream)
    return tensors, metadata


def tensor(sample):
    data = torch.frombuffer(bytearray(sample.data), dtype=torch.uint8)
    return data.view(DTYPES[sample.dtype]).reshape(sample.shape)


def load(path):
    if os.path.exists(path):
        return load_one(path)
    # Several files, found as the libraries on top of torch do it.
    with open(path + ".index.json") as file:
        weight_map = json.load(file)["weight_map"]
    tensors, metadata = [], {}
    for shard in sorted(set(weight_map.values())):
        found, more = load_one(os.path.join(os.path.dirname(path), shard))
        assert {t.name for t in found} == {name for name, of in weight_map.items() if of == shard}
        tensors += found
        metadata.update(more)
    return tensors, metadata


def load_one(path):
    # The first release that has it reads no numbers with a point.
    has_safe = "weights_only" in OPTIONS and not torch.__version__.startswith("1.")
    options = {"weights_only": True} if has_safe else {}
    held = describe(torch.load(path, **options))
    if "mmap" in OPTIONS:
        assert describe(torch.load(path, mmap=True, **options)) == held, "mapped, it is another"
    return held


def describe(loaded):
    tensors, metadata = [], {}
    for name, value in loaded.items():
        if not torch.is_tensor(value):
            metadata[name] = value
            continue
        dtype = next(ours for ours, theirs in DTYPES.items() if theirs == value.dtype)
        shape = list(value.shape)
        if dtype == "f4_e2m1":
            shape[-1] *= 2
        tensors.append(Sample(name, dtype, shape, data_of(value.detach())))
    return tensors, metadata


def data_of(value):
    # Types that it cannot copy are never strided here.
    flat = (value if value.is_contiguous() else value.contiguous()).reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


if __name__ == "__main__":
    run(write, load)
