"""gguf, the Python package of llama.cpp: plain and quantized tensors, and metadata of every type but nested arrays.

The kinds it writes are `plain`, `full`, and `quantized` with blocks that the package makes itself. Metadata is written
with the types that GGUF has for it.
"""

import glob
import os

import gguf
import numpy as np
from common import METADATA, Sample, elements, run, samples

KINDS = gguf.GGMLQuantizationType
# Ours -> (theirs, the numpy type that carries it).
DTYPES = {
    "f32": (KINDS.F32, np.float32),
    "f16": (KINDS.F16, np.float16),
    "bf16": (KINDS.BF16, np.uint8),
    "f64": (KINDS.F64, np.float64),
    "i8": (KINDS.I8, np.int8),
    "i16": (KINDS.I16, np.int16),
    "i32": (KINDS.I32, np.int32),
    "i64": (KINDS.I64, np.int64),
}
QUANTIZED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0"]


def write(kind, path):
    writer = gguf.GGUFWriter(path, "tenfold")
    writer.add_int32("epoch", METADATA["epoch"])
    writer.add_float32("loss", METADATA["loss"])
    writer.add_int64("delta", METADATA["delta"])
    metadata = METADATA | {"general.architecture": "tenfold"}
    if kind == "quantized":
        writer.add_quantization_version(2)
        metadata["general.quantization_version"] = 2
    tensors = list(quantized() if kind == "quantized" else fitting(kind))
    for t in tensors:
        add(writer, t)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors, metadata


def fitting(kind):
    """The samples that GGUF has types for, with at most the four dimensions that ggml reads."""
    for t in samples("basic" if kind == "plain" else kind, DTYPES, scalar=False):
        if t.dtype in DTYPES and len(t.shape) <= 4:
            yield t


def quantized():
    values = np.sin(np.arange(4 * 512, dtype=np.float32)).reshape(4, 512)
    for name in QUANTIZED:
        blocks = gguf.quants.quantize(values, KINDS[name])
        yield Sample("w." + name, "gguf:" + name, [4, 512], blocks.tobytes())


def add(writer, t):
    if t.dtype.startswith("gguf:"):
        rows = np.frombuffer(t.data, np.uint8).reshape(t.shape[0], -1)
        writer.add_tensor(t.name, rows, raw_dtype=KINDS[t.dtype[5:]])
    elif t.dtype == "bf16":
        rows = np.frombuffer(t.data, np.uint8).reshape(*t.shape[:-1], -1)
        writer.add_tensor(t.name, rows, raw_dtype=KINDS.BF16)
    else:
        writer.add_tensor(t.name, np.frombuffer(t.data, DTYPES[t.dtype][1]).reshape(t.shape))


def load(path):
    if os.path.exists(path):
        return load_one(path)
    # Several parts, which count themselves.
    parts = sorted(glob.glob(path.removesuffix(".gguf") + "-*-of-*.gguf"))
    found = [load_one(part) for part in parts]
    for number, (_, metadata) in enumerate(found):
        assert metadata.pop("split.no") == number
        assert metadata.pop("split.count") == len(parts)
        assert metadata.pop("split.tensors.count") == sum(len(tensors) for tensors, _ in found)
    return [t for tensors, _ in found for t in tensors], found[0][1]


def load_one(path):
    reader = gguf.GGUFReader(path)
    names = {theirs: ours for ours, (theirs, _) in DTYPES.items()}
    tensors = []
    for t in reader.tensors:
        shape = [int(d) for d in reversed(t.shape)]
        dtype = names.get(t.tensor_type) or "gguf:" + t.tensor_type.name
        block, size = gguf.GGML_QUANT_SIZES[t.tensor_type]
        data = t.data.tobytes()
        assert len(data) == elements(shape) // block * size, t.name
        tensors.append(Sample(t.name, dtype, shape, data))
    # The head of the file is no metadata, and the alignment is how it was written.
    own = lambda key: not key.startswith("GGUF.") and key != "general.alignment"
    return tensors, {key: field.contents() for key, field in reader.fields.items() if own(key)}


run(write, load)
