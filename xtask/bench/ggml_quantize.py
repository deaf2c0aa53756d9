"""ggml's quantizer, the library in C that llama.cpp uses, as a contestant of `cargo xtask bench`.

`quantize RUNS FILE TYPE THREADS` prints the best time, in nanoseconds, of quantizing the only tensor of a safetensors file as
a matrix with rows of 4096. The numbers are in memory before the clock starts; each thread has rows of its own. The library is the
one in the wheel of pywhispercpp: the wheels of llama.cpp's own packages have none.
"""

import ctypes
import json
import pathlib
import struct
import sys
import threading
import time

import _pywhispercpp
import numpy as np

ROW = 4096
# The number of the type in ggml, elements and bytes of a block.
TYPES = {"Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q6_K": (14, 256, 210)}

# Those that the module has loaded are the ones: another copy would bring its own tables.
packages = pathlib.Path(_pywhispercpp.__file__).parent
(library,) = (packages / "pywhispercpp.libs").glob("libggml-base-*")
ggml = ctypes.CDLL(str(library))
chunk = ggml.ggml_quantize_chunk
chunk.restype = ctypes.c_size_t
chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]


def numbers(path):
    with open(path, "rb") as file:
        json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        return np.fromfile(file, dtype=np.float32)


def quantize(x, kind, out, threads):
    number, block, size = kind
    rows = x.size // ROW
    row_size = ROW // block * size
    cuts = [rows * n // threads for n in range(threads + 1)]

    def part(first, last):
        # Foreign functions run without the interpreter's lock.
        done = chunk(number, x.ctypes.data, out.ctypes.data, first * ROW, last - first, ROW, None)
        assert done == (last - first) * row_size

    workers = [threading.Thread(target=part, args=cut) for cut in zip(cuts, cuts[1:])]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


job, runs, path, name, threads = sys.argv[1:]
assert job == "quantize"
x, kind = numbers(path), TYPES[name]
best = None
for _ in range(int(runs)):
    start = time.perf_counter_ns()
    out = np.empty(x.size // kind[1] * kind[2], dtype=np.uint8)
    quantize(x, kind, out, int(threads))
    took = time.perf_counter_ns() - start
    best = took if best is None else min(best, took)
print(best)
