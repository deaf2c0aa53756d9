"""gguf-py as a contestant of `cargo xtask bench`.

`vocabulary COUNT FILE` writes a file with so many tokens and one tensor, `blocks TYPE:MIB FILE` one with tensors of quantized
blocks. `open RUNS FILE` prints the best time in which the package read the file and listed its keys and tensors,
`dequantize RUNS FILE` the best time in which it made numbers of all tensors, one after the other, in nanoseconds, and
`quantize:TYPE RUNS FILE` that in which it made blocks of the only tensor of a safetensors file, as rows of 4096.
"""

import json
import struct
import sys
import time

import gguf
import numpy as np

ROW = 1 << 14
TENSORS = 8


def vocabulary(count, path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_token_list([f"token-{n:06}" for n in range(count)])
    writer.add_token_scores([float(-n) for n in range(count)])
    writer.add_token_types([1] * count)
    writer.add_tensor("x", np.zeros(32, dtype=np.float32))
    finish(writer)


def blocks(name, mib, path):
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    row = ROW // elements * size
    rows = (mib << 20) // TENSORS // row
    random = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "llama")
    for n in range(TENSORS):
        data = random.integers(0, 256, (rows, ROW // elements, size), dtype=np.uint8)
        # The scales are at the beginning of both types; random bytes could be NaN.
        scales = {"Q4_K": 2, "Q8_0": 1}[name]
        small = random.random((rows, ROW // elements, scales), dtype=np.float32).astype(np.float16)
        data[:, :, : 2 * scales] = small.view(np.uint8).reshape(rows, ROW // elements, 2 * scales)
        writer.add_tensor(f"blk.{n}.weight", data.reshape(rows, row), raw_dtype=kind)
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def open_(path):
    reader = gguf.GGUFReader(path)
    return [list(reader.fields), [(t.name, t.shape, t.tensor_type) for t in reader.tensors]]


def best(runs, work):
    times = [work() for _ in range(runs)]
    print(min(times))


def timed(work):
    start = time.perf_counter_ns()
    result = work()
    took = time.perf_counter_ns() - start
    del result
    return took


def dequantize(path):
    tensors = gguf.GGUFReader(path).tensors
    # In memory before the clock starts, as it is for us.
    loaded = [(np.array(t.data), t.tensor_type) for t in tensors]
    return lambda: sum(timed(lambda: gguf.quants.dequantize(*each)) for each in loaded)


def quantize(name, path):
    kind = gguf.GGMLQuantizationType[name]
    with open(path, "rb") as file:
        json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        rows = np.fromfile(file, dtype=np.float32).reshape(-1, 4096)
    return lambda: timed(lambda: gguf.quants.quantize(rows, kind))


job, first, path = sys.argv[1:]
if job == "vocabulary":
    vocabulary(int(first), path)
elif job == "blocks":
    name, mib = first.split(":")
    blocks(name, int(mib), path)
elif job == "open":
    best(int(first), lambda: timed(lambda: open_(path)))
elif job == "dequantize":
    best(int(first), dequantize(path))
else:
    best(int(first), quantize(job.removeprefix("quantize:"), path))
