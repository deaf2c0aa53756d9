"""Changed PyTorch checkpoints, and what `torch.load(weights_only=True)` sees in them: see changes.py.

The pickles of fixtures are changed and packed again, so that no checksum gives them away; streams are changed as they are.
Others are made from nothing, with odd storages, sizes and strides. Each file has a process of its own.
"""

import hashlib
import io
import struct
import zipfile
from pickle import UnpicklingError

import numpy as np
import torch
from changes import PLAIN, changed, fixtures, run

LONGEST = 16384
NAMES = {
    "bool": "bool", "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "uint32": "u32", "int32": "i32",
    "uint64": "u64", "int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128", "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2",
    "float8_e4m3fnuz": "f8_e4m3fnuz", "float8_e5m2fnuz": "f8_e5m2fnuz", "float8_e8m0fnu": "f8_e8m0",
    "float4_e2m1fn_x2": "f4_e2m1",
}  # fmt: skip
DTYPES = {getattr(torch, theirs): ours for theirs, ours in NAMES.items() if hasattr(torch, theirs)}
CLASSES = {"FloatStorage": 4, "DoubleStorage": 8, "HalfStorage": 2, "LongStorage": 8, "CharStorage": 1, "BoolStorage": 1,
           "ComplexFloatStorage": 8, "BFloat16Storage": 2}  # fmt: skip


def make(rng, directory):
    files = [found for end in (".pt", ".bin", ".pth") for found in fixtures(directory, end, LONGEST)]
    while True:
        yield made(rng) if rng.random() < 0.5 else changed_fixture(rng, files)


def changed_fixture(rng, files):
    kind, name, data = rng.choice(files)
    if kind == "reject" and rng.random() < 0.2:
        return data, name
    if rng.random() < 0.1 or not data.startswith(b"PK"):
        # Of a stream, most often in its pickles.
        content, what = changed(rng, data, 0, rng.choice([len(data), min(len(data), 1000)]))
        return content, f"{name}: {what}"
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except Exception:
        return data, name
    inside = [n for n, (member, _) in enumerate(members) if member.endswith(".pkl")]
    place = rng.choice(inside) if inside and rng.random() < 0.8 else rng.randrange(len(members))
    member, content = members[place]
    content, what = changed(rng, content)
    members[place] = (member, content)
    return packed(members), f"{name}: {what} of {member}"


def packed(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


class Maker:
    """A checkpoint in the form that torch writes, whose numbers are odd now and then."""

    def __init__(self, rng):
        self.rng = rng
        self.done = []

    def odd(self, what, usual, others):
        if self.rng.random() < 0.06:
            self.done.append(what)
            return self.rng.choice(others)
        return usual

    def file(self):
        rng = self.rng
        count = rng.choice([1, 1, 2, 3])
        members, items = [], []
        for n in range(count):
            storage = rng.choice(list(CLASSES))
            elements = rng.choice([1, 6, 12, 24])
            data = bytes(rng.randrange(2) for _ in range(elements * CLASSES[storage]))
            data = self.odd("a storage", data, [data[:-1], data + b"x", b"", data + data])
            members.append((b"data/%d" % n, data))
            items.append(text(self.odd("a name", "t%d" % n, ["t0", "a.b", "", "\u00e9"])) + self.tensor(n, storage, elements))
        items += self.odd("a value", [], [[text("n") + b"K\x05"], [text("n") + b"]"], [b"K\x07" + b"K\x05"], [text("t0") + b"N"]])
        rng.shuffle(items)
        pickle = b"\x80" + self.odd("a protocol", b"\2", [b"\1", b"\3", b"\4", b"\7"])
        if rng.random() < 0.5:
            pickle += b"ccollections\nOrderedDict\n)R"
        else:
            pickle += b"}"
        pickle += b"(" + b"".join(items) + b"u." + self.odd("an end", b"", [b"x"])
        members = [(b"data.pkl", pickle), (b"byteorder", self.odd("a byte order", b"little", [b"big", b"middle"]))] + members
        members += self.odd("a version", [(b"version", b"3\n")], [[], [(b"version", b"11\n")], [(b"version", b"x")]])
        members += self.odd("another member", [], [[(b"more", b"")], [(b"data/9", b"1")], [(b"data/0/1", b"1")]])
        return packed([("archive/" + name.decode(), content) for name, content in members]), ", ".join(self.done) or PLAIN

    def tensor(self, n, storage, elements):
        rng = self.rng
        shape = rng.choice([[elements], [1, elements], [elements, 1], [elements // 2, 2] if elements > 1 else [1]])
        stride = [int(np.prod(shape[at + 1 :])) for at in range(len(shape))]
        kind = rng.random()
        if kind < 0.1:
            shape, stride = shape[::-1], stride[::-1]
        elif kind < 0.15:
            shape, stride = shape + [3], stride + [0]
        elif kind < 0.2:
            shape = [1]
            stride = [1]
        places = [shape, stride]
        which = rng.randrange(2)
        places[which] = self.odd("a size or stride", places[which], [[-1], [0], [1 << 40], [elements, elements], [], [1 << 62, 4], [2, 0, 5]])
        offset = self.odd("an offset", 0, [1, -1, elements, 1 << 40, (1 << 63) - 1])
        key = self.odd("a key", b"%d" % n, [b"0", b"99", b"../0", b""])
        size = self.odd("a count", elements, [elements + 1, 0, -1, 1 << 40])
        module = self.odd("a class", b"torch\n" + storage.encode(), [b"torch\nQInt8Storage", b"os\nsystem", b"torch.cuda\nFloatStorage", b"torch.storage\nUntypedStorage", b"torch\nfloat32"])
        persistent = b"(" + text("storage") + b"c" + module + b"\n" + text(key.decode()) + text("cpu") + number(size) + b"tQ"
        function = self.odd("a function", b"torch._utils\n_rebuild_tensor_v2", [b"torch._utils\n_rebuild_tensor", b"torch._utils\n_rebuild_tensor_v3", b"torch._utils\n_rebuild_qtensor"])
        hooks = b"ccollections\nOrderedDict\n)R"
        last = [b"\x89" + hooks, b"\x88" + hooks, b"\x89" + hooks + b"ctorch\nint16\n", b"", b"\x89N"]
        last = self.odd("arguments", last[0], last)
        return b"c" + function + b"\n(" + persistent + number(offset) + tuple_(places[0]) + tuple_(places[1]) + last + b"tR"


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value):
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes(9, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def tuple_(values):
    return b"(" + b"".join(number(value) for value in values) + b"t"


def made(rng):
    return Maker(rng).file()


def see(path):
    tensors = []
    try:
        loaded = torch.load(path, weights_only=True)
    except UnpicklingError as error:
        # What is wrong stands behind what could be done about it.
        raise ValueError(str(error).split("WeightsUnpickler error: ")[-1].strip()) from None
    flatten(loaded, None, tensors, 0, path)
    return {"tensors": tensors, "metadata": {}}


def flatten(value, name, tensors, depth, path):
    if depth > 256:
        raise ValueError("too deep")
    if torch.is_tensor(value):
        alone = path.rsplit("/", 1)[1].rsplit(".", 1)[0]
        tensors.append(describe(alone if name is None else name, value))
    elif isinstance(value, dict):
        for key, inner in value.items():
            flatten(inner, str(key) if name is None else f"{name}.{key}", tensors, depth + 1, path)
    elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        for place, inner in enumerate(value):
            flatten(inner, str(place) if name is None else f"{name}.{place}", tensors, depth + 1, path)


def describe(name, value):
    value = value.detach()
    try:
        if value.layout != torch.strided or value.is_quantized or value.is_meta:
            raise ValueError("no plain tensor")
        if value.numel() * value.element_size() > 1 << 30:
            raise ValueError("more than a GiB")
        if value.dtype not in DTYPES:
            raise ValueError(f"type {value.dtype}")
        # Types that cannot be copied are read as integers of their width.
        flat = value
        if not value.is_contiguous():
            width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(value.element_size())
            flat = (value.view(width) if width and not value.is_complex() else value).contiguous()
        # A stride of one element can be anything, and stays.
        flat = flat.reshape(-1).clone(memory_format=torch.contiguous_format).resize_(flat.numel())
        if flat.is_complex():
            flat = torch.view_as_real(flat.resolve_conj()).reshape(-1)
        data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        dtype, shape = DTYPES[value.dtype], list(value.shape)
        if dtype == "f4_e2m1":
            shape[-1] *= 2
        return {"name": name, "dtype": dtype, "shape": shape, "sha256": hashlib.sha256(data).hexdigest()}
    except Exception as error:
        return {"name": name, "refused": f"{type(error).__name__}: {error}"[:200]}


run(".pt", make, see, apart=True)
