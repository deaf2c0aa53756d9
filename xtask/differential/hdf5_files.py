"""Changed HDF5 files, and what h5py sees in them: see changes.py.

Fixtures are changed, most often within a structure, whose checksum is put right where it has one. What h5py sees are the
datasets that can be reached by hard links, read one by one. Each file has a process of its own: the library behind h5py does not
survive all of them.
"""

import hashlib
import struct

import h5py
import numpy as np
from changes import PLAIN, changed, fixtures, run
from h5py import h5d, h5o, h5s, h5t

LONGEST = 24576
# Structures that are worth a change, and how many bytes of those with a fixed length their checksum covers.
SIGNATURES = {
    b"\x89HDF\r\n\x1a\n": 44, b"OHDR": None, b"BTHD": 34, b"FRHP": 142, b"FAHD": 24, b"EAHD": 68,
    b"TREE": None, b"SNOD": None, b"HEAP": None, b"GCOL": None, b"BTLF": None, b"FHDB": None, b"FADB": None, b"EAIB": None,
}  # fmt: skip
NAMES = {"?": "bool", "b": "i8", "B": "u8", "h": "i16", "H": "u16", "i": "i32", "I": "u32", "l": "i64", "L": "u64",
         "q": "i64", "Q": "u64", "e": "f16", "f": "f32", "d": "f64", "F": "c64", "D": "c128"}  # fmt: skip
FLOATS = {  # size, sign, exponent at and bits, mantissa at and bits, bias
    (4, 31, 23, 8, 0, 23, 127): "f32", (8, 63, 52, 11, 0, 52, 1023): "f64", (2, 15, 10, 5, 0, 10, 15): "f16",
    (2, 15, 7, 8, 0, 7, 127): "bf16", (1, 7, 3, 4, 0, 3, 7): "f8_e4m3", (1, 7, 2, 5, 0, 2, 15): "f8_e5m2",
}  # fmt: skip


def make(rng, directory):
    files = list(fixtures(directory, ".h5", LONGEST))
    sound = [(kind, name, data) for kind, name, data in files if kind == "valid"]
    while True:
        if rng.random() < 0.05:
            yield rng.choice(sound)[2], PLAIN
        else:
            yield changed_fixture(rng, files)


def changed_fixture(rng, files):
    kind, name, data = rng.choice(files)
    if kind == "reject" and rng.random() < 0.2:
        return data, name
    places = [(at, mark) for mark in SIGNATURES for at in occurrences(data, mark)]
    places += [(at, b"v1 header") for at in old_headers(data)]
    if not places or rng.random() < 0.2:
        content, what = changed(rng, data)
        return content, f"{name}: {what}"
    at, mark = rng.choice(places)
    length = covered(data, at, mark)
    content, what = changed(rng, data, at, at + (length or 200))
    if length and len(content) == len(data) and rng.random() < 0.9:
        check = struct.pack("<I", lookup3(content[at : at + length]))
        content = content[: at + length] + check + content[at + length + 4 :]
    return content, f"{name}: {what}, in {mark!r} at {at}"


def occurrences(data, mark):
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


def old_headers(data):
    """Where the headers of objects are that have no signature: lists of the old kind of groups say so."""
    for at in occurrences(data, b"SNOD"):
        for entry in range(int.from_bytes(data[at + 6 : at + 8], "little")):
            place = int.from_bytes(data[at + 16 + 40 * entry :][:8], "little")
            if data[place : place + 1] == b"\1":
                yield place


def covered(data, at, mark):
    """How many bytes a checksum covers that is right; 0 where there is none."""
    length = SIGNATURES.get(mark)
    if mark == b"OHDR":
        flags = data[at + 5]
        before = 6 + 16 * bool(flags & 0x20) + 4 * bool(flags & 0x10)
        width = 1 << (flags & 3)
        length = before + width + int.from_bytes(data[at + before : at + before + width], "little")
    if length is None or at + length + 4 > len(data):
        return 0
    (stored,) = struct.unpack_from("<I", data, at + length)
    return length if stored == lookup3(data[at : at + length]) else 0


def lookup3(data):
    """Bob Jenkins' hash, with an initial value of 0."""
    most = 0xFFFFFFFF
    a = b = c = (0xDEADBEEF + len(data)) & most

    def turn(x, by):
        return (x << by | x >> 32 - by) & most

    at = 0
    while len(data) - at > 12:
        x, y, z = struct.unpack_from("<III", data, at)
        a, b, c = a + x & most, b + y & most, c + z & most
        for first, second, third in [(4, 6, 8), (16, 19, 4)]:
            a, c = (a - c & most) ^ turn(c, first), c + b & most
            b, a = (b - a & most) ^ turn(a, second), a + c & most
            c, b = (c - b & most) ^ turn(b, third), b + a & most
        at += 12
    if at == len(data):
        return c
    x, y, z = struct.unpack("<III", data[at:].ljust(12, b"\0"))
    a, b, c = a + x & most, b + y & most, c + z & most
    last = [a, b, c]
    for into, by_, bits in [(2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)]:
        last[into] = (last[into] ^ last[by_]) - turn(last[by_], bits) & most
    return last[2]


def see(path):
    found, seen = [], set()
    with h5py.File(path, "r") as file:
        walk(file["/"], "", seen, found, 0)
    return {"tensors": found, "metadata": {}}


def walk(group, prefix, seen, found, depth):
    if depth > 64:
        raise ValueError("groups too deep")
    seen.add(address(group))
    for name in sorted(group.keys(), key=lambda name: name.encode("utf-8", "surrogateescape")):
        path = prefix + name
        link = group.get(name, getlink=True)
        if link is None:
            raise ValueError("it is listed and not found by its name")
        if not isinstance(link, h5py.HardLink):
            continue
        try:
            item = group[name]
            place = address(item)
        except Exception as error:
            found.append({"name": path, "refused": f"{type(error).__name__}: {error}"[:200]})
            continue
        if place in seen:
            continue
        seen.add(place)
        if isinstance(item, h5py.Group):
            walk(item, path + "/", seen, found, depth + 1)
        elif isinstance(item, h5py.Dataset):
            try:
                found.extend(describe(path, item))
            except Exception as error:
                found.append({"name": path, "refused": f"{type(error).__name__}: {error}"[:200]})


def address(item):
    return h5o.get_info(item.id).addr


def describe(path, dataset):
    if dataset.id.get_space().get_simple_extent_type() == h5s.NULL:
        return
    kind = dataset.id.get_type()
    settings = dataset.id.get_create_plist()
    if settings.get_layout() == h5d.VIRTUAL or settings.get_external_count():
        raise ValueError("data in other files")
    elements = int(np.prod(dataset.shape, dtype=object)) if dataset.shape else 1
    if elements * kind.get_size() > 1 << 30:
        raise ValueError("more than a GiB")
    dtype, raw = type_of(kind)
    if dtype is None:
        return
    if raw:
        values = np.empty(dataset.shape, "V%d" % kind.get_size())
        dataset.id.read(h5s.ALL, h5s.ALL, values, mtype=kind)
        if kind.get_order() == h5t.ORDER_BE:
            values = np.frombuffer(values.tobytes(), "u%d" % kind.get_size()).byteswap()
    else:
        values = np.asarray(dataset[()])
        values = values.astype(values.dtype.newbyteorder("<"))
    yield {"name": path, "dtype": dtype, "shape": list(dataset.shape), "sha256": hashlib.sha256(values.tobytes()).hexdigest()}


def type_of(kind):
    """What we call a type, and whether the bytes are read as they are; nothing of what is no number."""
    if isinstance(kind, h5t.TypeIntegerID):
        if kind.get_offset() or kind.get_precision() != 8 * kind.get_size():
            raise ValueError("an integer with unused bits")
        return NAMES[kind.dtype.char], False
    if isinstance(kind, h5t.TypeFloatID):
        known = FLOATS.get((kind.get_size(), *kind.get_fields(), kind.get_ebias()))
        if known is None or kind.get_precision() != 8 * kind.get_size() or kind.get_offset():
            raise ValueError("an unusual float")
        return known, True
    if isinstance(kind, h5t.TypeEnumID):
        return type_of_enum(kind)
    if isinstance(kind, h5t.TypeCompoundID):
        dtype = kind.dtype
        if dtype.kind != "c":
            raise ValueError("a compound type")
        return NAMES[dtype.char], False
    if kind.get_class() == getattr(h5t, "COMPLEX", -1):
        return NAMES[kind.dtype.char], False
    return None, False


def type_of_enum(kind):
    dtype = kind.dtype
    if dtype.kind == "b":
        return "bool", False
    return NAMES[dtype.newbyteorder("=").char], False


run(".h5", make, see, apart=True)
