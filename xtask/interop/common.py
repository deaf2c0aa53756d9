"""What the programs of this folder share: the tensors they write, and the JSON in which they say what a file holds.

Every program is run as `PROGRAM write KIND FILE` or `PROGRAM load FILE` by the Python of one virtual environment,
and prints one object: {"tensors": [{"name", "dtype", "shape", "sha256"}], "metadata"}. The digest is
the one of `tenfold digest --json`: of the dense little-endian row-major bytes or, where a tensor has none, of its
parts. The dtype names are those of `tenfold inspect --json`. Null stands for what a package cannot tell: the metadata,
or the dtype of a tensor without a dense form.
"""

import hashlib
import json
import math
import sys
from collections import namedtuple

Sample = namedtuple("Sample", "name dtype shape data")

# Bits of one element.
BITS = {
    "bool": 8, "u8": 8, "i8": 8, "u16": 16, "i16": 16, "u32": 32, "i32": 32, "u64": 64, "i64": 64,
    "f4_e2m1": 4, "f8_e4m3": 8, "f8_e5m2": 8, "f8_e4m3fnuz": 8, "f8_e5m2fnuz": 8, "f8_e8m0": 8,
    "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128,
}  # fmt: skip

METADATA = {"epoch": 7, "loss": 0.25, "delta": -3}


def samples(kind, dtypes, scalar):
    """The tensors of one file.

    `basic` fits every format and version, so that any file can become any other; `full` has all of the writer's own
    types and ranks, and a scalar where the writer has scalars.
    """
    if kind == "basic":
        yield sample("embed.weight", "f32", [96, 64])
        yield sample("embed.mask", "bool", [31])
        yield sample("layers.0.größe.漢字", "i32", [2, 3, 5])
        yield sample("layers.0.norm", "f16", [7, 1, 3, 1])
        # Over one zstd block and one frame of a seekable stream; a period of 4093 bytes keeps it compressible.
        period = sample("", "f32", [1024]).data[:4093]
        yield Sample("head", "f32", [3, 131072], (period * 385)[: 3 * 131072 * 4])
        return
    for dtype in dtypes:
        yield sample("dtype." + dtype, dtype, [4, 5])
    for rank in range(0 if scalar else 1, 7):
        yield sample("rank.%d" % rank, "i32", [3, 1, 2, 1, 2, 2][:rank])


def sample(name, dtype, shape):
    """A tensor of every bit pattern its type allows: values that arithmetic would change, such as NaNs, included."""
    size = elements(shape) * BITS[dtype] // 8
    data = hashlib.shake_128((name + dtype).encode()).digest(size)
    if dtype == "bool":
        data = bytes(b & 1 for b in data)
    return Sample(name, dtype, shape, data)


def elements(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def run(write, load):
    """The command line that all programs share. `write` and `load` return (samples, metadata or None)."""
    job, *args = sys.argv[1:]
    tensors, metadata = {"write": write, "load": load}[job](*args)
    rows = [
        {"name": t.name, "dtype": t.dtype, "shape": list(t.shape), "sha256": hashlib.sha256(t.data).hexdigest()}
        for t in tensors
    ]
    json.dump({"tensors": rows, "metadata": plain(metadata)}, sys.stdout, allow_nan=False)


def plain(value):
    """Metadata as `tenfold inspect --json` spells what JSON has no words for."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
