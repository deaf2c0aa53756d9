"""Changed .npy and .npz files, and what `numpy.load(allow_pickle=False)` sees in them: see changes.py.

Arrays are changed in their headers, where it matters, or their headers are put together from parts that Python would
take. Archives are changed in their structure, or sound ones are made of changed arrays.
"""

import hashlib
import io
import os
import struct
import sys
import zipfile

import numpy as np
from changes import PLAIN, changed, fixtures, run

ARCHIVES = sys.argv[1].rstrip("/").endswith("npz")
LONGEST = 8192

DESCRS = ["'<f4'", "'<f4'", "'<f8'", "'>f8'", "'|u1'", "'<i2'", "'>i8'", "'|b1'", "'?'", "'<c8'", "'>c16'", "'f4'",
          "'=i4'", "'|f4'", "'<V2'", "'|V2'", "'<V1'", "'|V3'", "'<f1'", "'|O'", "'O'", "'<U1'", "'|S3'", "'S'", "'V'",
          "'<M8[s]'", "'<m8'", "'<f16'", "'<c32'", "'g'", "'d'", "'f'", "'e'", "'i'", "'l'", "'q'", "'B'", "'H'",
          "'float32'", "'int'", "'complex'", "'bool'", "'u3'", "'<f04'", "'<f 4'", "' <f4'", "'<f4 '", "'<<f4'", "''",
          "None", "4", "'f4,f4'", "'2f4'", "'(2,)f4'", "[('a', '<f4')]", "[]", "('<f4', (2,))", "('<f4',)", "{}",
          "'<b1'", "'>i1'", "'!f4'", "'<u8'", "'\\x3cf4'", "'<f\\u0034'", "'<\\146'", "u'<f4'", "b'<f4'", "'<f' '4'",
          "'''<f4'''", "r'<f4'", "'<F4'", "'<a2'", "'|T16'", "'c'", "'p'", "'<i16'", "'i0'", "'<f2'", "'<\u00e94'"]  # fmt: skip
ORDERS = ["False", "False", "True", "0", "1", "None", "'True'", "true", "not True", "(True)", "False or True", "[]"]
SHAPES = ["()", "(3,)", "(2, 3)", "(3, 2)", "(2,3,)", "(1, 2, 3)", "(0,)", "(0, 7)", "(5, 0, 3)", "( 6 , )", "(6)", "6",
          "[6]", "[2, 3]", "(6L,)", "(2L, 3L)", "(0x6,)", "(0b110,)", "(0o6,)", "(1_0,)", "(+6,)", "(-1,)", "(-0,)",
          "(06,)", "(00,)", "(6.0,)", "(6e0,)", "(True,)", "(True, False)", "(None,)", "('6',)", "((6,),)", "(,)",
          "(6,,)", "(6 7)", "(6, # six\n)", "(6,\n)", "(6,\\\n)", "(3*2,)", "(1+2,)", "(6j,)", "(4294967296,)",
          "(4294967296, 4294967296)", "(0, 4294967296, 4294967296, 4)", "(9223372036854775807,)", "(2, 3) ", "{6}",
          "(9223372036854775808,)", "(18446744073709551615,)", "(18446744073709551616,)", "(0, 18446744073709551616)",
          "(2,3)+()", "(2,\t3)", "(2,\r\n3)", "(2,\f3)", "(2,\v3)", "(2,\u00a03)", "(" + "1," * 32 + ")",
          "(" + "1," * 64 + ")", "(" + "1," * 65 + ")", "(0," + "1," * 63 + ")", "(6,)L", "(6l,)", "(6 L,)"]  # fmt: skip
KEYS = ["'descr'", "'fortran_order'", "'shape'"]
ODD_KEYS = ['"descr"', "descr", "'descr '", "b'descr'", "u'shape'", "'sha' 'pe'", "'x'", "1", "'Shape'", "None"]
WRAPS = ["{%s}", "{%s, }", "{%s,}", " {%s}", "\t{%s}", "\n{%s}", "{%s} ", "({%s})", "{%s}\n\n", "{%s}\0", "{%s};", "{%s}#",
         "{%s} # x", "dict(%s)", "[%s]", "{%s}}", "{{%s}", "{ %s\n}", "{%s,,}", "{,%s}", "{%s}\f", "{\n %s}",
         "#\n{%s}", "{%s}\\\n", "{**{%s}}"]  # fmt: skip


def made_header(rng):
    """A header of parts, most of them as NumPy writes them."""
    odd = rng.sample(range(5), rng.choice([1, 1, 1, 2]))
    descr = rng.choice(DESCRS if 0 in odd else DESCRS[:12])
    order = rng.choice(ORDERS if 1 in odd else ORDERS[:3])
    shape = rng.choice(SHAPES if 2 in odd else SHAPES[:10])
    keys = list(KEYS)
    pairs = list(zip(keys, [descr, order, shape]))
    if 3 in odd:
        kind = rng.random()
        if kind < 0.3:
            rng.shuffle(pairs)
        elif kind < 0.5:
            pairs.pop(rng.randrange(3))
        elif kind < 0.7:
            pairs.append(rng.choice(pairs))
        else:
            place = rng.randrange(3)
            pairs[place] = (rng.choice(ODD_KEYS), pairs[place][1])
    colon = rng.choice([": ", ": ", ":", " : ", ":\n"])
    text = ", ".join(key + colon + value for key, value in pairs)
    return (rng.choice(WRAPS) if 4 in odd else WRAPS[0]).replace("%s", text)


def plain_array(rng):
    """An array as writers write them: everybody must take it."""
    descr, shape = rng.choice(["<f4", "|u1", ">f8", "<c16", "|b1", "<i8", ">u2"]), rng.choice([(), (3,), (2, 3), (0, 4), (2, 1, 5)])
    quote, space = rng.choice("'\""), rng.choice(["", " "])
    values = [quote + descr + quote, rng.choice(["False", "True"]), str(shape)]
    pairs = [quote + key.strip("'") + quote + ":" + space + value for key, value in zip(KEYS, values)]
    if rng.random() < 0.3:
        rng.shuffle(pairs)
    text = "{" + ("," + space).join(pairs) + rng.choice(["}", ", }", ",}"])
    text += " " * rng.choice([0, 1, -(len(text) + 11) % 64]) + rng.choice(["", "\n"])
    data = bytes(rng.randrange(2) for _ in range(int(np.prod(shape)) * np.dtype(descr).itemsize))
    return array_of(rng.choice([1, 2, 3]), text.encode(), data), PLAIN


def made_array(rng):
    if rng.random() < 0.15:
        return plain_array(rng)
    text = made_header(rng)
    version = rng.choice([1, 1, 2, 3])
    encoded = text.encode("utf-8" if version == 3 or rng.random() < 0.1 else "latin-1", "replace")
    if rng.random() < 0.8:
        encoded += b" " * (-(len(encoded) + 11) % 64) + b"\n"
    data = bytes(rng.randrange(256) for _ in range(rng.choice([0, 4, 24, 48, 96, 200])))
    return array_of(version, encoded, data), repr(text)


def array_of(version, text, data):
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def changed_array(rng, arrays):
    """A fixture with a change, most often in the text of its header, whose length is put right."""
    kind, name, data = rng.choice(arrays)
    if kind == "reject" and rng.random() < 0.3:
        return data, name
    if rng.random() < 0.3 or len(data) < 12:
        content, what = changed(rng, data)
        return content, f"{name}: {what}"
    wide = 0 if data[6] == 1 else 2
    at = 10 + wide
    end = at + int.from_bytes(data[8:at], "little")
    begin = data.find(b"{", at)
    text, what = changed(rng, data[at:end], max(begin - at, 0), data.rfind(b"}", at, end) - at + 2)
    return array_of(data[6] or 1, text, data[end:]), f"{name}: {what} of its text"


def arrays_of(directory):
    return [found for found in fixtures(directory, ".npy", LONGEST) if found[2][:6] == b"\x93NUMPY"]


def make_arrays(rng, directory):
    arrays = arrays_of(directory)
    while True:
        yield made_array(rng) if rng.random() < 0.5 else changed_array(rng, arrays)


def make_archives(rng, directory):
    arrays = arrays_of(os.path.join(directory, "../npy"))
    archives = list(fixtures(directory, ".npz", LONGEST))
    while True:
        yield made_archive(rng, arrays) if rng.random() < 0.4 else changed_archive(rng, archives)


def plain_archive(rng):
    """An archive as writers write them."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name in rng.sample(["a.npy", "b.npy", "d/e.npy", "\u00e9.npy"], rng.randrange(1, 5)):
            with archive.open(name, "w", force_zip64=rng.random() < 0.5) as member:
                member.write(plain_array(rng)[0])
    return file.getvalue(), PLAIN


def made_archive(rng, arrays):
    if rng.random() < 0.1:
        return plain_archive(rng)
    file = io.BytesIO()
    said = []
    with zipfile.ZipFile(file, "w") as archive:
        for _ in range(rng.choice([1, 1, 2, 3])):
            content, what = made_array(rng) if rng.random() < 0.5 else changed_array(rng, arrays)
            name = rng.choice(["a.npy", "b.npy", "c.npy", "d/e.npy", "f", "g.txt", "\u00e9.npy", "../h.npy", "i.npy.npy"])
            method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
            wide = rng.random() < 0.2
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=wide) as member:
                member._compress_type = method
                member.write(content)
            said.append(f"{name}: {what}")
        if rng.random() < 0.1:
            archive.comment = rng.choice([b"x", b"PK\5\6", b"PK\5\6" + bytes(18), b"y" * 300])
    content = file.getvalue()
    around = rng.random()
    if around < 0.05:
        content, said = b"#!/bin/sh\n" + content, said + ["with something in front"]
    elif around < 0.1:
        content, said = content + b"\0" * rng.choice([1, 22, 30]), said + ["with something behind"]
    return content, "; ".join(said)


def changed_archive(rng, archives):
    """A fixture with a change, most often in the records of its structure."""
    _, name, data = rng.choice(archives)
    records = [at for at in range(len(data)) if data.startswith(b"PK", at)]
    if records and rng.random() < 0.85:
        at = rng.choice(records)
        content, what = changed(rng, data, at, at + 60)
    else:
        content, what = changed(rng, data)
    return content, f"{name}: {what}"


NAMES = {"b1": "bool", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64",
         "f2": "f16", "f4": "f32", "f8": "f64", "c8": "c64", "c16": "c128", "V2": "bf16"}  # fmt: skip


def see(path):
    if not ARCHIVES:
        loaded = np.load(path, allow_pickle=False)
        # By its first bytes it is something else.
        if not isinstance(loaded, np.ndarray):
            raise ValueError("not an array")
        name = os.path.basename(path).rsplit(".", 1)[0]
        return {"tensors": [describe(name, loaded)]}
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        raise ValueError("not an archive")
    with loaded as file:
        return {"tensors": [member(file, name) for name in file.zip.namelist() if name.endswith(".npy")]}


def member(file, full):
    name = full.removesuffix(".npy")
    try:
        values = file[full]
    except Exception as error:
        return {"name": name, "refused": f"{type(error).__name__}: {error}"[:300]}
    if isinstance(values, bytes):
        return {"name": name, "dtype": "bytes", "shape": []}
    return describe(name, values)


def describe(name, values):
    code = values.dtype.str[1:]
    if values.dtype.byteorder == ">":
        values = values.byteswap()
    data = values.tobytes()
    if code == "b1":
        data = bytes(int(byte != 0) for byte in data)
    return {
        "name": name,
        "dtype": NAMES.get(code, "numpy:" + code),
        "shape": list(values.shape),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


run(".npz" if ARCHIVES else ".npy", make_archives if ARCHIVES else make_arrays, see)
