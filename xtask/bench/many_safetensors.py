"""safetensors 0.8 as a contestant of `cargo xtask bench`.

`open RUNS FILE` prints the best time in which the package opened the file and listed the names of its tensors, `load
RUNS FILE` the best time in which it gave all of them as arrays, in nanoseconds.
"""

import sys
import time

from safetensors import safe_open
from safetensors.numpy import load_file


def open_(path):
    with safe_open(path, framework="np") as file:
        return list(file.keys())


job, number, path = sys.argv[1:]
call = {"open": open_, "load": load_file}[job]
best = None
for _ in range(int(number)):
    start = time.perf_counter_ns()
    result = call(path)
    took = time.perf_counter_ns() - start
    best = took if best is None else min(best, took)
    del result
print(best)
