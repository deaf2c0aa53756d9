"""Changed ONNX files, and what the Python package onnx sees in them: see changes.py.

Fixtures are changed, and models are made whose fields are odd now and then. What the package sees is what its checker passes
and `numpy_helper.to_array` gives, tensor by tensor.
"""

import hashlib

import numpy as np
import onnx
from changes import PLAIN, changed, fixtures, run
from google.protobuf.message import DecodeError
from onnx import numpy_helper

LONGEST = 16384
NAMES = {
    1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64", 12: "u32",
    13: "u64", 14: "c64", 15: "c128", 16: "bf16", 17: "f8_e4m3", 18: "f8_e4m3fnuz", 19: "f8_e5m2", 20: "f8_e5m2fnuz",
    21: "u4", 22: "i4", 23: "f4_e2m1", 24: "f8_e8m0", 25: "u2", 26: "i2", 27: "f6_e2m3", 28: "f6_e3m2",
}  # fmt: skip
SMALL = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2, 27: 6, 28: 6}
# Type -> its typed field and bytes of an element.
FIELDS = {1: (4, 4), 2: (5, 1), 3: (5, 1), 5: (5, 2), 6: (5, 4), 7: (7, 8), 9: (5, 1), 11: (10, 8), 13: (11, 8), 16: (5, 2)}


def make(rng, directory):
    files = list(fixtures(directory, ".onnx", LONGEST))
    while True:
        yield made(rng) if rng.random() < 0.6 else changed_fixture(rng, files)


def changed_fixture(rng, files):
    kind, name, data = rng.choice(files)
    if kind == "reject" and rng.random() < 0.2 or not data:
        return data, name
    content, what = changed(rng, data, 0, rng.choice([16, 64, len(data)]))
    return content, f"{name}: {what}"


def varint(number):
    number %= 1 << 64
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def number(field_number, value):
    return varint(field_number << 3) + varint(value)


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.done = []

    def odd(self, what, right, others, chance=0.02):
        if self.rng.random() >= chance:
            return right
        value = self.rng.choice(others)
        self.done.append(f"{what} {value!r} instead of {right!r}"[:80])
        return value

    def tensor(self, n):
        rng = self.rng
        kind = rng.choice(list(FIELDS))
        dims = [rng.choice([1, 2, 3, 0]) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        elements = int(np.prod(dims, dtype=np.int64))
        typed, width = FIELDS[kind]
        parts = [number(1, self.odd("a dimension", dim, [-1, 4, 1 << 40, 0])) for dim in dims]
        if dims and rng.random() < 0.2:
            parts = [field(1, b"".join(varint(dim) for dim in dims))]
        parts.append(number(2, self.odd("a type", kind, [0, 8, 14, 22, 29, 99])))
        name = self.odd("a name", b"t%d" % n, [b"t0", "\u00e9".encode(), b"t" * 300])
        parts.append(field(8, name))
        data = bytes(rng.randrange(2) if kind == 9 else rng.randrange(256) for _ in range(elements * width))
        if rng.random() < 0.5:
            data = self.odd("raw_data", data, [data + b"x", data[:-1], b""])
            parts.append(field(9, data))
        elif typed in (4, 10):
            parts.append(field(self.odd("a field", typed, [4, 5, 7, 10]), self.odd("floats", data, [data + data, data[:4]])))
        else:
            signed = kind in (3, 5, 6, 7)
            numbers = [int.from_bytes(data[i : i + width], "little", signed=signed) for i in range(0, len(data), width)]
            numbers = self.odd("numbers", numbers, [numbers + [1], numbers[:-1], numbers + numbers])
            if rng.random() < 0.3:
                parts += [number(typed, value) for value in numbers]
            else:
                parts.append(field(typed, b"".join(varint(value) for value in numbers)))
        parts += self.odd("another field", [], [[number(99, 1)], [field(3, b"")], [field(12, b"doc")], [b"\x9b\x06\x9c\x06"]])
        if rng.random() < 0.3:
            rng.shuffle(parts)
        return field(5, b"".join(parts))

    def file(self):
        rng = self.rng
        graph = [field(2, b"g")] + [self.tensor(n) for n in range(rng.choice([0, 1, 2, 3]))]
        if rng.random() < 0.2:
            half = len(graph) // 2
            graphs = [field(7, b"".join(graph[:half])), field(7, b"".join(graph[half:]))]
        else:
            graphs = [field(7, b"".join(graph))]
        model = [number(1, self.odd("ir_version", 10, [0, -1, 3, 14]))] + graphs
        model.append(field(8, number(2, 21)))
        model += self.odd("another field", [], [[number(99, 1)], [b"\x98\x06\x00"], [b"\x07"], [field(14, b"")]])
        if rng.random() < 0.2:
            rng.shuffle(model)
        content = b"".join(model)
        content = self.odd("the end", content, [content[:-1], content + b"\x00", content + b"\x12\x7f"])
        return content, ", ".join(self.done) or PLAIN


def made(rng):
    return Maker(rng).file()


def see(path):
    model = onnx.load(path)
    checks(model)
    return {"tensors": [describe(tensor) for tensor in model.graph.initializer], "metadata": {}}


def checks(model):
    """What of the checker is about containers of tensors: it also wants names and operators that only graphs need."""
    if model.ir_version < 1:
        raise ValueError("no ir_version")
    if not model.HasField("graph"):
        raise ValueError("no graph")
    names = [tensor.name for tensor in model.graph.initializer]
    # The package gives what is not UTF-8 as bytes.
    if any(isinstance(name, bytes) for name in names):
        raise ValueError("a name that is not UTF-8")
    if len(set(names)) < len(names):
        raise ValueError("a name twice")
    if not names and model.graph.sparse_initializer:
        raise ValueError("only sparse initializers")
    for tensor in model.graph.initializer:
        if any(dim < 0 for dim in tensor.dims):
            raise ValueError("a negative dimension")


def describe(tensor):
    found = {"name": tensor.name}
    try:
        if tensor.data_type == 8:
            raise ValueError("strings")
        fields = [tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data, tensor.string_data]
        if sum(bool(len(data)) for data in fields) + tensor.HasField("raw_data") > 1:
            raise ValueError("two data fields")
        array = numpy_helper.to_array(tensor)
    except DecodeError:
        raise
    except Exception as error:
        return found | {"refused": f"{type(error).__name__}: {error}"[:200]}
    data = array.tobytes()
    if tensor.data_type in SMALL:
        bits, packed = SMALL[tensor.data_type], 0
        for place, value in enumerate(array.reshape(-1).view(np.uint8)):
            packed |= (int(value) & ((1 << bits) - 1)) << (place * bits)
        data = packed.to_bytes((array.size * bits + 7) // 8, "little")
    return found | {"dtype": NAMES[tensor.data_type], "shape": list(array.shape), "sha256": hashlib.sha256(data).hexdigest()}


run(".onnx", make, see)
