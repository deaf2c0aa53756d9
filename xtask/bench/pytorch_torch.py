"""torch as a contestant of `cargo xtask bench`.

`make COUNT FILE` writes a checkpoint of so many tensors of 64 KiB, `big MIB FILE` one of 32 tensors. `open RUNS FILE` prints the
best time in which `torch.load` mapped the file and made its tensors, in nanoseconds. `convert FILE OUTPUT` writes it as
safetensors, the way that people do it.
"""

import sys
import time

import torch


def state(count, elements):
    return {"layers.%d.weight" % n: torch.full((elements // 128, 128), float(n)) for n in range(count)}


def open_(runs, path):
    best = None
    for _ in range(runs):
        start = time.perf_counter_ns()
        found = torch.load(path, mmap=True, weights_only=True)
        took = time.perf_counter_ns() - start
        best = took if best is None else min(best, took)
        del found
    print(best)


def convert(path, output):
    from safetensors.torch import save_file

    save_file(torch.load(path, weights_only=True), output)


job, first, second = sys.argv[1:]
if job == "make":
    torch.save(state(int(first), 1 << 14), second)
elif job == "big":
    torch.save(state(32, (int(first) << 20) // 4 // 32), second)
elif job == "open":
    open_(int(first), second)
else:
    convert(first, second)
