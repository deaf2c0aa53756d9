"""What `tenfold stats` and `tenfold diff` say of numbers, beside numpy in f64.

Run as `figures.py TENFOLD FOLDER`. Writes files of random bits and of well-behaved numbers of every type that numpy and
ml_dtypes have and a format can hold (4- and 2-bit integers no format here has), asks the command about them, and prints
a JSON array of rows: {"what", "count", "error"}. Integers, counts and extremes must be equal, sums within 1e-11 of the
numbers' size.
"""

import json
import os
import struct
import subprocess
import sys

import ml_dtypes
import numpy as np

# Our name: (safetensors' name, numpy's type, the smallest normal number, bits).
TYPES = {
    "bool": ("BOOL", np.bool_, 0, 8), "u8": ("U8", np.uint8, 0, 8), "i8": ("I8", np.int8, 0, 8),
    "u16": ("U16", np.uint16, 0, 16), "i16": ("I16", np.int16, 0, 16), "u32": ("U32", np.uint32, 0, 32),
    "i32": ("I32", np.int32, 0, 32), "u64": ("U64", np.uint64, 0, 64), "i64": ("I64", np.int64, 0, 64),
    "f4_e2m1": ("F4", ml_dtypes.float4_e2m1fn, 1, 4), "f6_e2m3": ("F6_E2M3", ml_dtypes.float6_e2m3fn, 1, 6),
    "f6_e3m2": ("F6_E3M2", ml_dtypes.float6_e3m2fn, 2**-2, 6), "f8_e4m3": ("F8_E4M3", ml_dtypes.float8_e4m3fn, 2**-6, 8),
    "f8_e5m2": ("F8_E5M2", ml_dtypes.float8_e5m2, 2**-14, 8),
    "f8_e4m3fnuz": ("F8_E4M3FNUZ", ml_dtypes.float8_e4m3fnuz, 2**-7, 8),
    "f8_e5m2fnuz": ("F8_E5M2FNUZ", ml_dtypes.float8_e5m2fnuz, 2**-15, 8),
    "f8_e8m0": ("F8_E8M0", ml_dtypes.float8_e8m0fnu, 0, 8), "f16": ("F16", np.float16, 2**-14, 16),
    "bf16": ("BF16", ml_dtypes.bfloat16, 2.0**-126, 16), "f32": ("F32", np.float32, 2.0**-126, 32),
    "f64": ("F64", np.float64, 2.0**-1022, 64), "c64": ("C64", np.complex64, 2.0**-126, 64),
}  # fmt: skip

RANDOM = np.random.default_rng(5)


def main():
    tenfold, folder = sys.argv[1:]
    rows = []

    def ask(*args):
        done = subprocess.run([tenfold, *args], capture_output=True, text=True)
        if done.returncode > 1:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout), done.returncode

    for make in stats_rows, c128_row, diff_rows, cast_rows, tolerance_rows:
        for what, check in make(ask, folder):
            try:
                rows.append({"what": what, "count": check(), "error": None})
            except Exception as error:  # each row by itself
                rows.append({"what": what, "count": 0, "error": "%s: %s" % (type(error).__name__, error)})
    json.dump(rows, sys.stdout)


def save(path, tensors):
    """A safetensors file by hand: its package does not pack numbers of less than a byte."""
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        packed = pack(array, TYPES[dtype][3])
        header[name] = {
            "dtype": TYPES[dtype][0],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(packed)],
        }
        data += packed
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def pack(array, bits):
    """Numbers of less than a byte begin in its lowest bits."""
    if bits >= 8:
        return array.tobytes()
    codes = np.frombuffer(array.tobytes(), np.uint8)
    places = (codes[:, None] >> np.arange(bits)) & 1
    return np.packbits(places.astype(np.uint8).ravel(), bitorder="little").tobytes()


def noise(dtype, shape):
    """Every bit pattern: NaN, infinities and subnormal numbers where there are any."""
    theirs, bits = TYPES[dtype][1], TYPES[dtype][3]
    count = int(np.prod(shape))
    data = RANDOM.integers(0, 256, count * np.dtype(theirs).itemsize, dtype=np.uint8)
    if dtype == "f64":
        # Exponents whose squares f64 still has.
        values = data.view(np.uint64) & ~np.uint64(0x7FF << 52) | (
            RANDOM.integers(1023 - 60, 1023 + 60, count, dtype=np.uint64) << np.uint64(52)
        )
        values[:5] = np.array([np.nan, np.inf, -np.inf, 5e-324, -0.0]).view(np.uint64)
        return values.view(np.float64).reshape(shape)
    if dtype == "bool":
        data &= 1
    elif bits < 8:
        data &= (1 << bits) - 1
    return data.view(theirs).reshape(shape)


def numbers(array):
    """All numbers of an array in f64, components of complex ones by themselves."""
    flat = array.ravel()
    if flat.dtype.kind == "c":
        flat = flat.view(np.float32 if flat.dtype == np.complex64 else np.float64)
    return flat, flat.astype(np.float64)


def plain(value):
    return float(value) if isinstance(value, str) else value


def near(found, wanted, size, what):
    assert found is not None and abs(found - wanted) <= 1e-11 * max(size, abs(wanted)), (what, found, wanted)


def check_stats(found, array, least):
    flat, wide = numbers(array)
    finite = wide[np.isfinite(wide)]
    integer = flat.dtype.kind in "iub"
    exact = (lambda x: int(x)) if integer else float
    source = flat if integer else finite
    wanted = {
        "elements": array.size,
        "numbers": flat.size,
        "finite": finite.size,
        "min": exact(source.min()),
        "max": exact(source.max()),
        "abs_max": max(abs(exact(source.min())), abs(exact(source.max()))),
        "zeros": int((wide == 0).sum()),
        "nan": int(np.isnan(wide).sum()),
        "positive_infinities": int((wide == np.inf).sum()),
        "negative_infinities": int((wide == -np.inf).sum()),
        "subnormals": int(((np.abs(wide) < least) & (wide != 0)).sum()),
    }
    for key, value in wanted.items():
        assert found[key] == value, (key, found[key], value)
    size = np.abs(finite).mean()
    near(found["mean"], np.mean(finite), size, "mean")
    near(found["std"], np.std(finite), size, "std")
    if "histogram" in found:
        counts, edges = np.histogram(finite, bins=len(found["histogram"]["counts"]))
        assert found["histogram"]["counts"] == counts.tolist(), "counts of the histogram"
        assert found["histogram"]["edges"] == edges.tolist(), "edges of the histogram"


def stats_rows(ask, folder):
    shapes = {"few": (12,), "odd": (31, 4, 71), "many": (3, 200_000)}
    arrays = {"%s.%s" % (d, s): (d, noise(d, shape)) for d in TYPES for s, shape in shapes.items()}
    arrays["f32.normal"] = ("f32", RANDOM.standard_normal((700, 900)).astype(np.float32))
    arrays["f64.far"] = ("f64", 1e8 + RANDOM.standard_normal((700, 900)))
    path = os.path.join(folder, "stats.safetensors")
    save(path, arrays)
    for threads in "1", "2", "3":
        found, _ = ask("stats", "--json", "--hist=16", "--threads", threads, path)
        of = {tensor["name"]: tensor for tensor in found["tensors"]}
        for dtype in TYPES:

            def check(of=of, dtype=dtype):
                mine = {name: array for name, (d, array) in arrays.items() if d == dtype}
                for name, array in mine.items():
                    check_stats(of[name], array, TYPES[dtype][2])
                return len(mine)

            yield "stats of %s, %s threads" % (dtype, threads), check
        if threads == "1":
            alone = found
        else:
            yield "stats on %s threads are those on 1" % threads, lambda found=found: same(found, alone)


def same(found, wanted):
    assert found == wanted
    return len(found["tensors"])


def c128_row(ask, folder):
    """Complex numbers of f64 by a TENS file, which is column-major."""
    array = RANDOM.standard_normal((40, 60)) + 1j * RANDOM.standard_normal((40, 60))
    path = os.path.join(folder, "c128.tens")
    head = b"TENS" + struct.pack("<I4s5I", 0x10000, b"IEEE", 8, 2, 2, 0, 0)
    head += b"".join(struct.pack("<IBBH", n, name, 0, 0) for n, name in zip(array.shape, b"ab"))
    data = array.tobytes(order="F")
    with open(path, "wb") as file:
        file.write(head + b"DENSDATA" + struct.pack("<Q", 16 + len(data)) + data)

    def check():
        found, _ = ask("stats", "--json", path)
        assert found["tensors"][0]["dtype"] == "c128"
        check_stats(found["tensors"][0], array, 2.0**-1022)
        return 1

    yield "stats of c128, column-major", check


def check_diff(values, a, b, different):
    (_, x), (_, y) = numbers(a), numbers(b)
    lanes = x.size // a.size
    assert values["different"] == int(different.sum()), (values["different"], int(different.sum()))
    first = int(np.flatnonzero(different)[0]) // lanes
    index = [int(i) for i in np.unravel_index(first, a.shape)]
    assert values["first"]["index"] == index, (values["first"], index)
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    error = np.abs(y - x)
    assert plain(values["max_abs"]) == error.max(), (values["max_abs"], error.max())
    some = x != 0
    near(values["max_rel"], (error[some] / np.abs(x[some])).max(), 0, "max_rel")
    near(values["relative_l2"], np.linalg.norm(error) / np.linalg.norm(x), 0, "relative_l2")
    near(values["cosine"], x @ y / (np.linalg.norm(x) * np.linalg.norm(y)), 1, "cosine")


def bits_differ(a, b):
    flat = a.view(np.float32) if a.dtype == np.complex64 else a
    width = flat.dtype.itemsize
    split = lambda array: np.frombuffer(array.tobytes(), np.uint8).reshape(-1, width)
    return (split(a) != split(b)).any(axis=1)


def diff_rows(ask, folder):
    paths = [os.path.join(folder, name) for name in ("a.safetensors", "b.safetensors")]
    left, right = {}, {}
    for dtype in TYPES:
        a = noise(dtype, (13, 7, 1000))
        b = a.copy().reshape(-1)
        places = RANDOM.integers(100, b.size, 50)
        b[places] = noise(dtype, (50,))
        left[dtype], right[dtype] = (dtype, a), (dtype, b.reshape(a.shape))
    # Integers that are too long for f64: the difference is exact all the same.
    left["long"] = ("i64", np.array([2**62, -(2**62)], np.int64))
    right["long"] = ("i64", np.array([2**62, 3 - 2**62], np.int64))
    save(paths[0], left)
    save(paths[1], right)
    found, code = ask("diff", "--json", *paths)
    of = {change["name"]: change for change in found["changes"]}
    for dtype in TYPES:

        def check(dtype=dtype):
            a, b = left[dtype][1], right[dtype][1]
            check_diff(of[dtype]["values"], a, b, bits_differ(a, b))
            return 1

        yield "diff of %s" % dtype, check

    def long_integers():
        values = of["long"]["values"]
        assert (values["different"], values["max_abs"]) == (1, 3.0), values
        first = values["first"]
        assert (first["index"], first["a"], first["b"]) == ([1], -(2**62), 3 - 2**62), first
        return 1

    yield "diff of long integers", long_integers

    def equal():
        assert code == 1 and ask("diff", "--json", paths[0], paths[0]) == (
            {
                "schema": "tenfold.diff/1", "a": paths[0], "b": paths[0], "equal": True,
                "equal_tensors": len(left), "changes": [], "metadata": [],
            },
            0,
        )  # fmt: skip
        return len(left)

    yield "diff of a file with itself", equal


def cast_rows(ask, folder):
    paths = [os.path.join(folder, name) for name in ("wide.safetensors", "narrow.safetensors")]
    a = RANDOM.standard_normal((50, 300)).astype(np.float32)
    casts = [d for d in TYPES if d.startswith(("f", "bf")) and d not in ("f32", "f8_e8m0")]
    narrow = {d: (d, a.astype(TYPES[d][1])) for d in casts}
    save(paths[0], {d: ("f32", a) for d in casts})
    save(paths[1], narrow)
    for option in [], ["--ignore-dtype"]:
        found, _ = ask("diff", "--json", *option, *paths)
        of = {change["name"]: change for change in found["changes"]}
        for dtype in casts:

            def check(of=of, dtype=dtype, option=option):
                b = narrow[dtype][1]
                different = a.ravel().astype(np.float64) != b.ravel().astype(np.float64)
                if option and not different.any():
                    assert dtype not in of
                elif not different.any():
                    assert of[dtype]["values"]["different"] == 0 and of[dtype]["b"]["dtype"] == dtype
                else:
                    check_diff(of[dtype]["values"], a, b, different)
                return 1

            yield " ".join(["diff of f32 and", dtype, *option]), check


def tolerance_rows(ask, folder):
    paths = [os.path.join(folder, name) for name in ("exact.safetensors", "near.safetensors")]
    a = RANDOM.standard_normal((40, 500)).astype(np.float32)
    b = (a * (1 + RANDOM.standard_normal(a.shape) * 1e-6)).astype(np.float32)
    save(paths[0], {"x": ("f32", a)})
    save(paths[1], {"x": ("f32", b)})
    x, y = a.ravel().astype(np.float64), b.ravel().astype(np.float64)
    order = lambda v: np.where(v.view(np.int32) < 0, -(v.view(np.int32) & 0x7FFFFFFF), v.view(np.int32)).astype(np.int64)
    steps = np.abs(order(a.ravel()) - order(b.ravel()))
    rules = [
        (["--rtol", "1e-6"], np.abs(x - y) > 1e-6 * np.abs(x)),
        (["--atol", "5e-7"], np.abs(x - y) > 5e-7),
        (["--atol", "1e-7", "--rtol", "1e-6"], np.abs(x - y) > 1e-7 + 1e-6 * np.abs(x)),
        (["--ulp", "4"], steps > 4),
    ]
    for option, different in rules:

        def check(option=option, different=different):
            found, _ = ask("diff", "--json", *option, *paths)
            assert 0 < different.sum() < different.size
            check_diff(found["changes"][0]["values"], a, b, different)
            return 1

        yield "diff of f32 " + " ".join(option), check


main()
