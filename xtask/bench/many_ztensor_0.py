"""ztensor 0.1.x as a contestant of `cargo xtask bench`.

`make COUNT FILE` writes that many small tensors, `big MIB FILE` 32 tensors of that size together, `open RUNS FILE`
prints the best time in which the package opened the file, in nanoseconds.
"""

import sys
import time

import numpy as np
from ztensor import Reader, Writer


def make(count, path):
    with Writer(path) as writer:
        for i in range(count):
            writer.add_tensor("layers.%06d.weight" % i, np.arange(i, i + 8, dtype=np.uint32).view(np.float32))


def big(mib, path):
    random = np.random.default_rng(1)
    with Writer(path) as writer:
        for i in range(32):
            writer.add_tensor("layers.%d.weight" % i, random.random((mib * 8, 1024), np.float32))


def open_(runs, path):
    best = None
    for _ in range(runs):
        start = time.perf_counter_ns()
        reader = Reader(path)
        took = time.perf_counter_ns() - start
        best = took if best is None else min(best, took)
        del reader
    print(best)


job, number, file = sys.argv[1:]
{"make": make, "big": big, "open": open_}[job](int(number), file)
