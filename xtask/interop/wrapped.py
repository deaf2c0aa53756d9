"""Writes hostile programs in many wrappings into a folder, each of which Python was seen to run. Prints the names of the files.

The programs call `os.getcwd`, which is another function while this runs: nothing happens but that the call is noted."""

import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import pathlib
import pickle
import struct
import sys
import tarfile
import zipfile
import zlib

import numpy

folder = pathlib.Path(sys.argv[1])
calls = []
os.getcwd = lambda: calls.append("getcwd") or "ran"

PROGRAMS = {
    "global": b"cos\ngetcwd\n(tR.",
    "inst": b"(ios\ngetcwd\n.",
    "obj": b"(cos\ngetcwd\no.",
    "stack_global": b"\x8c\x02os\x94\x8c\x06getcwd\x94\x93)R.",
    "memo": b"Vos\np1_0\n0Vgetcwd\np2\n0g10\ng2\n\x93)R.",
    "escapes": b"V\\u006fs\nVgetcw\\U00000064\n\x93)R.",
    "strings": b"S'o\\x73'\nU\x06getcwd\x93)R.",
    "computed": b"cbuiltins\nstr\n(C\x02osX\x05\x00\x00\x00asciitRVgetcwd\n\x93)R.",
    "dotted": b"\x80\x04\x8c\x08argparse\x8c\x0a_os.getcwd\x93)R.",
}
EVIL = PROGRAMS["global"]

# A value of every kind, which is taken away again.
EIGHT = b"\0" * 8
BEGINNINGS = [
    b"B\0\0\0\0", b"C\0", b"F1\n", b"G" + EIGHT, b"I1\n", b"J\0\0\0\0", b"K\0", b"L1L\n", b"M\0\0", b"N", b"S'a'\n",
    b"T\0\0\0\0", b"U\0", b"Va\n", b"X\0\0\0\0", b"(", b")", b"]", b"}", b"\x88", b"\x89", b"\x8a\0", b"\x8b\0\0\0\0",
    b"\x8c\0", b"\x8d" + EIGHT, b"\x8e" + EIGHT, b"\x8f", b"\x96" + EIGHT, b"\x96" + EIGHT + b"(K\x01e",
]


def gzip_with(flags):
    fields = {4: b"\x04\0abcd", 8: b"name\0", 16: b"comment\0"}
    head = b"\x1f\x8b\x08" + bytes([flags]) + b"\0" * 6 + b"".join(f for flag, f in fields.items() if flags & flag)
    if flags & 2:
        head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    body = zlib.compressobj(9, zlib.DEFLATED, -15)
    return head + body.compress(EVIL) + body.flush() + struct.pack("<II", zlib.crc32(EVIL), len(EVIL))


def zipped(*members, kind=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def tarred(form, old=False):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        member = tarfile.TarInfo("pickle")
        member.size = len(EVIL)
        archive.addfile(member, io.BytesIO(EVIL))
    whole = bytearray(out.getvalue())
    if old:
        # Without the signature, as before POSIX.
        whole[257:265] = b"\0" * 8
        whole[148:156] = b" " * 8
        whole[148:156] = b"%06o\0 " % sum(whole[:512])
    return bytes(whole)


def array(kind, blanks=0):
    header = b"{'descr': " + b" " * blanks + kind + b", 'fortran_order': False, 'shape': (1,), }\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header + EVIL


def plain(data):
    pickle.load(io.BytesIO(data))


def every(data):
    stream = io.BytesIO(data)
    while stream.tell() < len(data):
        pickle.load(stream)


def unzipped(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            plain(archive.read(name))


def untarred(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            plain(archive.extractfile(member).read())


FILES = [(f"program_{name}.bin", plain, program) for name, program in PROGRAMS.items()]
FILES += [(f"begins_{place}.bin", plain, begins + b"0" + EVIL) for place, begins in enumerate(BEGINNINGS)]
for chosen in itertools.product([0, 2], [0, 4], [0, 8], [0, 16]):
    FILES.append((f"flags_{sum(chosen)}.gz", lambda data: plain(gzip.decompress(data)), gzip_with(sum(chosen))))
ustar = bytearray(b"\x80\x02X" + struct.pack("<I", 520) + b"A" * 520)
ustar[257:263] = b"ustar\0"
FILES += [
    ("second.gz", lambda data: plain(gzip.decompress(data)), gzip.compress(b"") + gzip.compress(EVIL)),
    ("zeros.gz", lambda data: plain(gzip.decompress(data)), gzip.compress(b"") + b"\0" * 9 + gzip.compress(EVIL)),
    ("zlib.bin", lambda data: plain(zlib.decompress(data)), zlib.compress(EVIL)),
    ("bzip2.bin", lambda data: plain(bz2.decompress(data)), bz2.compress(EVIL)),
    ("xz.bin", lambda data: plain(lzma.decompress(data)), lzma.compress(EVIL)),
    ("lzma.bin", lambda data: plain(lzma.decompress(data)), lzma.compress(EVIL, format=lzma.FORMAT_ALONE)),
    ("behind.bin", every, b"\x80\x02]q\0." + EVIL),
    ("behind_another.bin", every, b"]." + b"N." + EVIL),
    ("looks_like_tar.bin", plain, bytes(ustar) + b"0" + EVIL),
    ("old.tar", untarred, tarred(tarfile.USTAR_FORMAT, old=True)),
    ("posix.tar", untarred, tarred(tarfile.PAX_FORMAT)),
    ("gnu.tar.gz", untarred, gzip.compress(tarred(tarfile.GNU_FORMAT))),
    ("zip.bin", unzipped, zipped(("archive/data.pkl", EVIL))),
    ("deflated.bin", unzipped, zipped(("archive/data.pkl", EVIL + b" " * 9999), kind=zipfile.ZIP_DEFLATED)),
    ("behind_text.bin", unzipped, b"hello world" + zipped(("archive/data.pkl", EVIL))),
    ("in_front_of_text.bin", unzipped, zipped(("archive/data.pkl", EVIL)) + b"hello world"),
    ("zip_in_zip.bin", lambda data: unzipped(zipfile.ZipFile(io.BytesIO(data)).read("x")), zipped(("x", zipped(("y", EVIL))))),
]
for name, content in [
    ("blanks", array(b"'|O'", 1 << 20)),
    ("escaped", array(b"'|\\x4f'")),
    ("named", array(b"'object'")),
]:
    FILES.append((f"{name}.npy", lambda data: numpy.load(io.BytesIO(data), allow_pickle=True, max_header_size=1 << 24), content))

for name, load, content in FILES:
    before = len(calls)
    try:
        load(content)
    except Exception as error:  # what comes after the call is no pickle of anything
        why = error
    if len(calls) == before:
        raise SystemExit(f"{name} does not run its program: {why!r}")
    (folder / name).write_bytes(content)
json.dump([name for name, _, _ in FILES], sys.stdout)
