"""Changed GGUF files, and what GGUFReader of the Python package gguf sees in them: see changes.py.

Fixtures are changed, most often in their headers, and files are made whose fields are odd now and then.
"""

import hashlib
import math
import struct

import gguf
import numpy as np
from changes import NUMBERS, PLAIN, Refused, changed, fixtures, run

LONGEST = 16384
TYPES = gguf.GGUFValueType
# Number -> struct's letter.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
NAMES = {"F32": "f32", "F16": "f16", "BF16": "bf16", "F64": "f64", "I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64"}
# The package says 40, ggml's own size is 36.
WRONG_SIZES = {"Q8_1"}


def make(rng, directory):
    files = list(fixtures(directory, ".gguf", LONGEST))
    while True:
        yield made(rng) if rng.random() < 0.5 else changed_fixture(rng, files)


def changed_fixture(rng, files):
    kind, name, data = rng.choice(files)
    if kind == "reject" and rng.random() < 0.2:
        return data, name
    # Most headers are that short.
    content, what = changed(rng, data, 0, rng.choice([32, 256, 1024, len(data)]))
    return content, f"{name}: {what}"


class Maker:
    """Puts a file together; `odd` gives another value than the right one now and then, and remembers it."""

    def __init__(self, rng):
        self.rng = rng
        self.order = ">" if rng.random() < 0.1 else "<"
        self.done = []

    def odd(self, what, right, others, chance=0.015):
        if self.rng.random() >= chance:
            return right
        value = self.rng.choice(others)
        self.done.append(f"{what} {value!r} instead of {right!r}"[:80])
        return value

    def pack(self, letter, number):
        if letter not in "fd":
            bits = 8 * struct.calcsize("<" + letter)
            number %= 1 << bits
            letter = letter.upper()
        return struct.pack(self.order + letter, number)

    def text(self, what, text):
        text = self.odd(what, text, [b"", b"\xff\xfe", b"a\0b", "\u00e9".encode(), text * 40, b"general.alignment"])
        return self.pack("Q", self.odd("length of " + what, len(text), NUMBERS)) + text

    def value(self, kind, depth=0):
        if kind == 8:
            return self.text("a string", self.rng.choice([b"", b"x", b"some words", b"\xc3"]))
        if kind == 9:
            inner = self.rng.choice([0, 4, 5, 6, 7, 8, 8, 10, 12] + ([9] if depth < 2 and self.rng.random() < 0.1 else []))
            count = self.rng.choice([0, 1, 3, 70])
            head = self.pack("I", self.odd("type of an array", inner, [9, 13, 255, 1 << 31]))
            head += self.pack("Q", self.odd("length of an array", count, NUMBERS))
            return head + b"".join(self.value(inner, depth + 1) for _ in range(count))
        number = self.rng.choice([0, 1]) if kind == 7 else self.rng.choice([0, 1, 7, 100, -1])
        number = self.odd("a bool", number, [2, 255]) if kind == 7 else number
        number = self.odd("a float", number, [math.nan, math.inf, 0.1]) if kind in (6, 12) else number
        return self.pack(SCALARS.get(kind, "B"), number)

    def file(self):
        rng = self.rng
        pairs = [(b"general.architecture", 8, None)]
        align = rng.choice([None, None, 32, 64, 8, 1])
        if align is not None:
            said = self.odd("alignment", align, [0, 3, 48, 1 << 31, 0xFFFFFFFF, 2, 4096], 0.1)
            pairs.append((b"general.alignment", self.odd("type of alignment", 4, [5, 10, 8]), said))
        align = align or 32
        for n in range(rng.choice([0, 1, 4])):
            kind = self.odd("type of a value", rng.randrange(13), [13, 255, 1 << 31])
            pairs.append((b"key.%d" % self.odd("key", n, [0]), kind, None))
        body = b""
        for key, kind, number in pairs:
            value = self.value(kind) if number is None or kind == 8 else self.pack(SCALARS[kind], number)
            body += self.text("a key", key) + self.pack("I", kind) + value
        infos, offset, count = b"", 0, rng.choice([0, 1, 2, 3])
        for n in range(count):
            info, size = self.tensor(n, offset, align)
            infos += info
            offset += -(-size // align) * align
        version = self.odd("version", 3, [1, 2, 0, 4, 3 << 24])
        counts = [self.odd("tensors", count, NUMBERS), self.odd("pairs", len(pairs), NUMBERS)]
        head = b"GGUF" + self.pack("I", version) + b"".join(self.pack("Q", number) for number in counts)
        content = head + body + infos
        content += bytes(-len(content) % align)
        content += bytes(rng.randrange(256) for _ in range(max(0, self.odd("bytes of data", offset, [0, offset - 1, offset + 9]))))
        return content, ", ".join(self.done) or PLAIN

    def tensor(self, n, offset, align):
        kind = self.rng.choice([0, 1, 2, 8, 12, 24, 26, 28, 30, 14, 39])
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
        dims = [self.rng.choice([1, 2, 3, 0]) for _ in range(self.rng.choice([0, 1, 1, 2, 3, 4, 5]))]
        dims = dims or ([] if block == 1 else [1])
        if dims:
            dims[0] = dims[0] * block
        len_ = math.prod(dims) // block * size
        written = [self.odd("a dimension", dim, NUMBERS) for dim in dims]
        info = self.text("a name", b"t.%d" % self.odd("name", n, [0]))
        info += self.pack("I", self.odd("dimensions", len(dims), [0, 1, 4, 5, 8, 9, 1 << 31]))
        info += b"".join(self.pack("Q", dim) for dim in written)
        info += self.pack("I", self.odd("type of a tensor", kind, [4, 5, 9, 15, 31, 36, 41, 42, 43, 255, 1 << 31]))
        return info + self.pack("Q", self.odd("offset", offset, [1, 32, 64, offset + 1, offset + align, *NUMBERS[-5:]])), len_


def made(rng):
    return Maker(rng).file()


def see(path):
    reader = gguf.GGUFReader(path)
    big = reader.byte_order == "S"
    tensors = [describe(t, big) for t in reader.tensors]
    own = lambda key: not key.startswith("GGUF.")
    metadata = {key: plain(field) for key, field in reader.fields.items() if own(key)}
    # What is null here is not compared.
    return {"tensors": tensors, "metadata": {key: value for key, value in metadata.items() if value is not None}}


def describe(t, big):
    kind = t.tensor_type.name
    shape = [int(dim) for dim in reversed(t.shape)]
    found = {"name": t.name, "dtype": NAMES.get(kind, "gguf:" + kind), "shape": shape}
    block, size = gguf.GGML_QUANT_SIZES[t.tensor_type]
    if t.data.nbytes != math.prod(shape) // block * size:
        raise Refused(f"{t.name} has {t.data.nbytes} bytes, which is not what its shape needs")
    # Blocks of big-endian files are as they are in the file; the two-byte floats too, which it gives as bytes.
    if kind not in WRONG_SIZES and not (big and (block > 1 or kind == "BF16")):
        found["sha256"] = hashlib.sha256(swapped(t.data).tobytes()).hexdigest()
    return found


def swapped(values):
    return values.byteswap() if values.dtype.byteorder == ">" else values


def plain(field):
    """The value as JSON has it, or nothing where the package does not give it as it is."""
    if field.types.count(TYPES.ARRAY) > 1:
        return None  # it makes one array of arrays in arrays
    try:
        value = field.contents()
    except UnicodeDecodeError:
        return None
    single = field.types[-1] == TYPES.FLOAT32
    return [number(v, single) for v in value] if isinstance(value, list) else number(value, single)


def number(value, single):
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(str(np.float32(value))) if single else value


run(".gguf", make, see)
