"""magnetron 0.2.x as a contestant of `cargo xtask bench`.

`make COUNT FILE` writes that many small tensors, `open RUNS FILE` prints the best time in which the package opened
the file (mapped, no tensor copied), in nanoseconds.
"""

import sys
import time
from array import array

from magnetron import dtype
from magnetron.snapshot import SnapshotWriter, deserialize


def make(count, path):
    names = ["layers.%06d.weight" % i for i in range(count)]
    with SnapshotWriter(path) as writer:
        for name in names:
            writer.declare(name, [8], dtype.float32)
        for i, name in enumerate(names):
            writer.write(name, array("I", range(i, i + 8)))


def open_(runs, path):
    best = None
    for _ in range(runs):
        start = time.perf_counter_ns()
        tensors = deserialize(path)
        took = time.perf_counter_ns() - start
        best = took if best is None else min(best, took)
        del tensors
    print(best)


job, number, file = sys.argv[1:]
{"make": make, "open": open_}[job](int(number), file)
