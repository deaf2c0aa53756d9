"""numpy and ml_dtypes as contestants of `cargo xtask bench`.

`make MIB DTYPE FILE` writes a safetensors file with one tensor of random numbers. `cast RUNS FILE DTYPE` prints the best
time of `astype`, in nanoseconds; the numbers are in memory before the clock starts.
"""

import json
import struct
import sys
import time

import ml_dtypes
import numpy as np

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def make(mib, name, path):
    dtype = np.dtype(DTYPES[name])
    count = (mib << 20) // dtype.itemsize
    info = {"dtype": name.upper(), "shape": [count], "data_offsets": [0, count * dtype.itemsize]}
    head = json.dumps({"x": info}).encode()
    head += b" " * (-len(head) % 8)
    random = np.random.default_rng(1)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(head)) + head)
        while count > 0:
            n = min(count, 1 << 24)
            random.standard_normal(n, dtype=np.float32).astype(dtype).tofile(out)
            count -= n


def cast(runs, path, name):
    with open(path, "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        array = np.frombuffer(file.read(), dtype=DTYPES[head["x"]["dtype"].lower()])
    best = None
    for _ in range(runs):
        start = time.perf_counter_ns()
        result = array.astype(DTYPES[name])
        took = time.perf_counter_ns() - start
        best = took if best is None else min(best, took)
        del result
    print(best)


job, first, second, third = sys.argv[1:]
if job == "make":
    make(int(first), second, third)
else:
    cast(int(first), second, third)
