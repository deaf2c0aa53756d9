"""Random slices of random arrays: what `tenfold show` gives of a safetensors file is what NumPy gives.

show.py TENFOLD DIRECTORY: prints a line of JSON with the number of slices and what differed.
"""

import io
import json
import subprocess
import sys

import numpy
from safetensors.numpy import save_file

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64".split()
FILES = 6
SLICES = 5


def values(random, dtype, shape):
    dtype = numpy.dtype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        info = numpy.iinfo(dtype)
        if random.random() < 0.5:
            return random.integers(max(info.min, -50), 50, shape).astype(dtype)
        return random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind == "c":
        part = numpy.dtype(f"float{dtype.itemsize * 4}")
        pairs = numpy.stack([values(random, part, shape), values(random, part, shape)], axis=-1)
        return numpy.ascontiguousarray(pairs).view(dtype)[..., 0]
    kinds = [
        lambda: random.standard_normal(shape),
        lambda: numpy.round(random.standard_normal(shape) * 10, 2),
        lambda: random.integers(-100, 100, shape).astype(float),
        lambda: numpy.exp(random.standard_normal(shape) * 20),
        lambda: random.standard_normal(shape) * 10.0 ** random.integers(-8, 9),
    ]
    with numpy.errstate(all="ignore"):
        array = numpy.array(kinds[random.integers(len(kinds))]()).astype(dtype)
    if array.size and random.random() < 0.2:
        array.flat[random.integers(array.size)] = random.choice([numpy.nan, numpy.inf, -numpy.inf])
    return array


def bound(random, dim):
    return "" if random.random() < 0.4 else str(random.integers(-dim - 2, dim + 3))


def slices(random, shape):
    words = []
    for dim in shape:
        kind = random.random()
        if kind < 0.3 and dim > 0:
            words.append(str(random.integers(-dim, dim)))
        elif kind < 0.4:
            words.append(":")
        else:
            step = random.choice(["", ":1", ":2", ":-1", ":-3", ":5"])
            words.append(f"{bound(random, dim)}:{bound(random, dim)}{step}")
    if words and random.random() < 0.3:
        first = random.integers(len(words))
        last = random.integers(first, len(words) + 1)
        words[first:last] = ["..."]
    return ", ".join(words)


def main():
    command, directory = sys.argv[1:]
    random = numpy.random.default_rng(20_240_607)
    done, failed = 0, []
    for number in range(FILES):
        arrays = {}
        for dtype in DTYPES:
            rank = random.integers(0, 5)
            largest = 9 if random.random() < 0.7 or rank > 3 else 40
            shape = tuple(int(dim) for dim in random.integers(0 if random.random() < 0.1 else 1, largest, rank))
            arrays[dtype] = values(random, dtype, shape)
        path = f"{directory}/show-{number}.safetensors"
        save_file(arrays, path)
        for dtype, array in arrays.items():
            for _ in range(SLICES):
                text = slices(random, array.shape)
                wanted = eval(f"array[{text}]", {"array": array}) if text else array

                def show(form):
                    call = [command, "show", path, dtype, "--slice", text, "--format", form]
                    return subprocess.run(call, capture_output=True, check=True).stdout

                done += 1
                found = numpy.load(io.BytesIO(show("npy")))
                same = found.dtype == wanted.dtype and found.shape == wanted.shape
                if not same or found.tobytes() != wanted.tobytes():
                    failed.append(f"{path} {dtype}[{text}]: other values")
                shown = show("text").decode().split("\n", 1)[1]
                if shown != str(numpy.asarray(wanted)) + "\n":
                    failed.append(f"{path} {dtype}[{text}]: shown differently")
    print(json.dumps({"slices": done, "failed": failed}))


main()
