"""h5py as a contestant of `cargo xtask bench`.

`make COUNT FILE` writes so many small datasets, `chunks MIB FILE` one dataset of shuffled and deflated chunks. `open RUNS FILE`
prints the best time in which the file was opened and all its datasets were listed with their types and shapes, `load RUNS
FILE` the best time in which all of them were read, in nanoseconds.
"""

import sys
import time

import h5py
import numpy as np


def make(count, path):
    with h5py.File(path, "w") as file:
        for n in range(count):
            file.create_dataset("layers/%d/weight.%d" % (n // 10, n), data=np.full(4, n, "f4"))


def chunks(mib, path):
    rows = (mib << 20) // 4 // 8192
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        data = file.create_dataset("x", (rows, 8192), "f4", chunks=(256, 1024), compression="gzip", shuffle=True)
        for row in range(0, rows, 256):
            data[row : row + 256] = random.standard_normal((min(256, rows - row), 8192), "f4")


def list_(path):
    found = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: found.append((name, item.dtype, item.shape)) if isinstance(item, h5py.Dataset) else None)
    return found


def load(path):
    found = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: found.append(item[()]) if isinstance(item, h5py.Dataset) else None)
    return found


job, number, path = sys.argv[1:]
if job in ("make", "chunks"):
    {"make": make, "chunks": chunks}[job](int(number), path)
    sys.exit()
best = None
for _ in range(int(number)):
    start = time.perf_counter_ns()
    result = {"open": list_, "load": load}[job](path)
    took = time.perf_counter_ns() - start
    best = took if best is None else min(best, took)
    del result
print(best)
