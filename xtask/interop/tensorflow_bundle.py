"""TensorFlow: checkpoints in one bundle, of plain tensors, of partitioned ones, and of objects."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from common import METADATA, Sample, run, samples

NAMES = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "u32": "uint32", "i32": "int32",
    "u64": "uint64", "i64": "int64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2",
}  # fmt: skip
DTYPES = {ours: getattr(tf, theirs, None) or getattr(tf.dtypes.experimental, theirs) for ours, theirs in NAMES.items()}
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def write(kind, path):
    prefix = path.removesuffix(".index")
    tensors = list(samples("basic" if kind == "basic" else "full", DTYPES, scalar=True))
    if kind == "objects":
        floats = [t for t in tensors if t.dtype in ("f32", "f64", "i64")]
        names = ["v%d" % n for n in range(len(floats))]
        objects = {name: tf.Variable(values(t)) for name, t in zip(names, floats)}
        tf.train.Checkpoint(**objects).write(prefix)
        return sorted(
            (Sample(name + VALUE, t.dtype, t.shape, t.data) for name, t in zip(names, floats)),
            key=lambda t: t.name.encode(),
        ), None
    names, slices, parts = [], [], []
    for n, t in enumerate(tensors):
        array = values(t)
        # Halves of what has rows, as partitioned variables are stored.
        cut = t.shape[0] // 2 if kind == "sliced" and t.shape and n % 2 == 0 else 0
        for start, part in ((0, array[:cut]), (cut, array[cut:])) if cut else ((0, array),):
            rest = ":".join("-" for _ in t.shape[1:])
            whole = " ".join(str(d) for d in t.shape)
            here = "%d,%d" % (start, len(part)) if cut else ""
            names.append(t.name)
            slices.append("%s %s%s" % (whole, here, ":" + rest if rest else "") if cut else "")
            parts.append(part)
    metadata = {key: str(value) for key, value in METADATA.items()} if kind == "full" else {}
    for key, value in metadata.items():
        names.append(key)
        slices.append("")
        parts.append(tf.constant(value))
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=parts)
    return sorted(tensors, key=lambda t: t.name.encode()), metadata


def values(sample):
    dtype = DTYPES[sample.dtype].as_numpy_dtype
    return np.frombuffer(sample.data, dtype).reshape(sample.shape)


def load(path):
    reader = tf.train.load_checkpoint(path.removesuffix(".index"))
    tensors, metadata = [], {}
    for name in sorted(reader.get_variable_to_shape_map(), key=str.encode):
        dtype = reader.get_variable_to_dtype_map()[name]
        value = reader.get_tensor(name)
        if dtype == tf.string:
            metadata[name] = value.decode()
            continue
        ours = next(ours for ours, theirs in DTYPES.items() if theirs == dtype)
        tensors.append(Sample(name, ours, list(np.shape(value)), np.asarray(value).tobytes()))
    return tensors, metadata


run(write, load)
