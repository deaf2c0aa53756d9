"""scipy as a contestant of `cargo xtask bench`.

`make MIB FILE` writes compressed variables of level 5, each of a matrix, `load RUNS FILE` prints the best time in which all were read, in
nanoseconds.
"""

import sys
import time

import numpy as np
from scipy.io import loadmat, savemat


def make(mib, path):
    random = np.random.default_rng(1)
    rows = (mib << 20) // 4 // 8 // 1024
    savemat(path, {"x%d" % n: random.standard_normal((rows, 1024), "f4") for n in range(8)}, do_compression=True)


job, number, path = sys.argv[1:]
if job == "make":
    make(int(number), path)
    sys.exit()
best = None
for _ in range(int(number)):
    start = time.perf_counter_ns()
    result = loadmat(path)
    took = time.perf_counter_ns() - start
    best = took if best is None else min(best, took)
    del result
print(best)
