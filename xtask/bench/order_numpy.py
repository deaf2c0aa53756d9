"""Makes matrices as TENS files, and times numpy: `make KIND SIZE FILE`, `order RUNS FILE`, `copy RUNS FILE`.

KIND is `dense` (random numbers, column-major) or `packed` (symmetric, packed). `order` is ascontiguousarray of the Fortran
array, `copy` a plain copy of its memory; both print the best time in nanoseconds.
"""

import struct
import sys
import time

import numpy as np

HEAD = 32 + 2 * 8


def make(kind, size, path):
    random = np.random.default_rng(1)
    head = b"TENS" + struct.pack("<I4s5I", 0x10000, b"IEEE", 4, 1, 2, 0, 0)
    for name in b"ab":
        head += struct.pack("<IBBH", size, name, 0, 0)
    if kind == "packed":
        head += b"SYMMETRY" + struct.pack("<QBB", 24, 1, 1) + b"xba" + bytes(3)
        count = size * (size + 1) // 2
    else:
        count = size * size
    with open(path, "wb") as out:
        out.write(head)
        out.write(b"DENSDATA" + struct.pack("<Q", (16 + 4 * count + 7) // 8 * 8))
        left = count
        while left > 0:
            n = min(left, 1 << 24)
            random.standard_normal(n, dtype=np.float32).tofile(out)
            left -= n
        out.write(bytes(-4 * count % 8))


def best(runs, work):
    times = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        result = work()
        times.append(time.perf_counter_ns() - start)
        del result
    print(min(times))


def main():
    what, *args = sys.argv[1:]
    if what == "make":
        kind, size, path = args
        return make(kind, int(size), path)
    runs, path = args
    size = struct.unpack_from("<I", open(path, "rb").read(HEAD), 32)[0]
    array = np.fromfile(path, dtype="<f4", offset=HEAD + 16, count=size * size)
    array = array.reshape((size, size), order="F")
    if what == "order":
        best(int(runs), lambda: np.ascontiguousarray(array))
    else:
        best(int(runs), lambda: array.copy(order="F"))


main()
