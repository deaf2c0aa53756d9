"""Makes a safetensors file of random f32 (`make MIB FILE`), and times what people write with numpy (`stats FILE`).

The time, in nanoseconds, is that of min, max, mean, std and isnan of numbers that are already in memory.
"""

import json
import struct
import sys
import time

import numpy as np


def make(mib, path):
    random = np.random.default_rng(1)
    rows = mib * 64
    size = rows * 4096 * 4
    header = json.dumps({"x": {"dtype": "F32", "shape": [rows, 4096], "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        for _ in range(mib):
            random.standard_normal(1 << 18, dtype=np.float32).tofile(out)


def stats(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
    array = np.fromfile(path, dtype="<f4", offset=8 + length)
    start = time.perf_counter_ns()
    result = array.min(), array.max(), array.mean(), array.std(), np.isnan(array).sum()
    took = time.perf_counter_ns() - start
    assert len(result) == 5
    print(took)


job, *args = sys.argv[1:]
if job == "make":
    make(int(args[0]), args[1])
else:
    stats(args[0])
