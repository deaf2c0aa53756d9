"""zarr-python as a contestant of `cargo xtask bench`.

`make MIB DIRECTORY` writes one array in chunks of Blosc with zstd, `load RUNS DIRECTORY` prints the best time in which it was read, in
nanoseconds.
"""

import sys
import time

import numpy as np
import zarr
from zarr.codecs import BloscCodec


def make(mib, path):
    rows = (mib << 20) // 4 // 8192
    random = np.random.default_rng(1)
    codec = BloscCodec(typesize=4, cname="zstd", clevel=5, shuffle="shuffle")
    root = zarr.open_group(path, mode="w")
    data = root.create_array("x", shape=(rows, 8192), dtype="f4", chunks=(256, 1024), compressors=codec)
    for row in range(0, rows, 256):
        data[row : row + 256] = random.standard_normal((min(256, rows - row), 8192), "f4")


def load(path):
    return zarr.open_group(path, mode="r")["x"][...]


job, number, path = sys.argv[1:]
if job == "make":
    make(int(number), path)
    sys.exit()
best = None
for _ in range(int(number)):
    start = time.perf_counter_ns()
    result = load(path)
    took = time.perf_counter_ns() - start
    best = took if best is None else min(best, took)
    del result
print(best)
