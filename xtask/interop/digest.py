"""The digests of docs/digest.md, written from that page: the standard library alone, and nothing of tenfold's.

`digest.py vectors` prints the test vectors of the page. `digest.py check TENFOLD FIXTURES PAGE` computes the digests of
every golden file, compares them with `TENFOLD digest --json`, compares the vectors with the page, and prints
[{"what", "count", "error"}].

What a file holds comes from the JSON beside it. `tenfold inspect --json` is asked for two things: where the bytes of parts
are, which are then compared with the SHA-256 of the JSON, and the types of tensors whose JSON names none.
"""

import glob
import hashlib
import json
import os
import struct
import subprocess
import sys

VERSION = 2


def u64(number):
    return struct.pack("<Q", number)


def text(string):
    data = string.encode()
    return u64(len(data)) + data


def sha256(data):
    return hashlib.sha256(data).digest()


class Part:
    def __init__(self, name, dtype, data):
        self.name, self.dtype, self.data = name, dtype, data


class Tensor:
    """`digest` is the tensor's own; `identity` is what counts in the content."""

    def __init__(self, name, dtype, shape, digest, identity=None):
        self.name, self.dtype, self.shape = name, dtype, shape
        self.digest, self.identity = digest, identity or digest


def dense(name, dtype, shape, data):
    return Tensor(name, dtype, shape, sha256(data))


def of_parts(name, dtype, shape, scheme, parts):
    parts = in_order(parts)
    digest = sha256(b"".join(u64(len(part.data)) + part.data for part in parts))
    kinds = [(part.name, part.dtype) for part in parts]
    return Tensor(name, dtype, shape, digest, described(scheme, "", kinds, digest))


def burn(name, shape, parameters, digest):
    kinds = [("values", "burn:QFloat")]
    return Tensor(name, "burn:QFloat", shape, digest, described("burn:QFloat", parameters, kinds, digest))


def in_order(parts):
    return sorted(parts, key=lambda part: part.name.encode())


def described(scheme, parameters, kinds, digest):
    words = text("tenfold.parts/2") + text(scheme) + text(parameters) + u64(len(kinds))
    return sha256(words + b"".join(text(name) + text(dtype) for name, dtype in kinds) + digest)


def content(tensors):
    records = b""
    for tensor in sorted(tensors, key=lambda tensor: tensor.name.encode()):
        records += text(tensor.name if len(tensors) > 1 else "") + text(tensor.dtype)
        records += u64(len(tensor.shape)) + b"".join(map(u64, tensor.shape)) + tensor.identity
    return sha256(records)


# --- test vectors


def ragged(scheme="ragged", lengths="lengths", payload="payload", dtype="f32"):
    parts = [
        Part(payload, dtype, bytes.fromhex("0000803f0000004000004040")),
        Part(lengths, "u32", bytes.fromhex("0100000002000000")),
    ]
    return of_parts("r", "parts", [2], scheme, parts)


def vectors():
    """(what it is, the tensors)"""
    one = dense("x", "f32", [2], bytes.fromhex("0000803f00000040"))
    yield "no tensor", []
    yield "`x`: `f32` of shape [2], bytes `0000803f00000040`", [one]
    yield "the same under any other name", [Tensor("y", one.dtype, one.shape, one.digest)]
    yield (
        "`b`: `u8` of shape [3, 1], bytes `010203`; `a`: `f64` of shape [], bytes `000000000000f83f`",
        [dense("b", "u8", [3, 1], b"\1\2\3"), dense("a", "f64", [], bytes.fromhex("000000000000f83f"))],
    )
    data = bytes.fromhex("0102feff0000003f")
    yield (
        "`q`: `burn:QFloat` of shape [2, 2], parameters `Q8S,Native,Symmetric,F32,-`, bytes `0102feff0000003f`",
        [burn("q", [2, 2], "Q8S,Native,Symmetric,F32,-", sha256(data))],
    )
    yield (
        "`r`: `parts` of shape [2], scheme `ragged`, `lengths` of `u32`, bytes `0100000002000000`,"
        " `payload` of `f32`, bytes `0000803f0000004000004040`",
        [ragged()],
    )
    yield "the same with the scheme `ragged/2`", [ragged(scheme="ragged/2")]
    yield "the same with `counts` instead of `lengths`", [ragged(lengths="counts")]
    yield "the same with `payload` of `i32`", [ragged(dtype="i32")]
    yield "`r` with the scheme `ragged`, `lengths` and `f32`, and `x` as above", [ragged(), one]


def rows_of_page():
    return ["| %s | `%s` |" % (what, content(tensors).hex()) for what, tensors in vectors()]


# --- golden files


def subject(case, known):
    """The file that a JSON speaks of."""
    named = known.get("open") or known.get("file")
    beside = os.path.join(os.path.dirname(case), str(named))
    if named and os.path.exists(beside):
        return beside
    found = [path for path in glob.glob(glob.escape(case[:-5]) + "*") if path != case]
    return min(path for path in found if path == case[:-5] or os.path.splitext(path)[0] == case[:-5])


def ask(tenfold, *args):
    answer = subprocess.run([tenfold, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert answer.stdout, answer.stderr.decode()
    return json.loads(answer.stdout)


def burn_parameters(quant):
    store = quant["store"]
    if quant["packed_dim"] is not None:
        store += ":%d" % quant["packed_dim"]
    scale, block = quant["scale_dtype"] or "F32", quant["block"]
    if block is None:
        whole, blocks = scale, "-"
    else:
        whole, blocks = quant["global_scale_dtype"] or "-", "x".join(map(str, block)) + ":" + scale
    return ",".join([quant["value"], store, quant["mode"], whole, blocks])


# The types that a JSON has in the place of one for all of a tensor.
VAGUE = {None, "custom", "quantized", "unknown"}
# What zTensor calls a type otherwise.
LOGICAL = {"f8_e4m3fn": "f8_e4m3", "complex64": "c64", "complex128": "c128"}


def part_type(part):
    logical = part.get("type")
    return LOGICAL.get(logical, logical) or part["dtype"]


def read_part(path, part, place):
    file = os.path.join(os.path.dirname(path), place["file"]) if "file" in place else path
    with open(file, "rb") as f:
        f.seek(place["offset"])
        data = f.read(place["bytes"])
    if place["encoding"].startswith("zstd"):
        import zstandard

        data = zstandard.ZstdDecompressor().decompress(data, max_output_size=part["bytes"])
    assert sha256(data).hex() == part["sha256"], "the part at byte %d is not that of the JSON" % place["offset"]
    return data


def tensor(known, listed, path):
    """A tensor from its JSON."""
    name, dtype, shape = known["name"], known["dtype"], known["shape"]
    parts = known.get("parts") or {}
    if dtype == "burn:QFloat":
        return burn(name, shape, burn_parameters(known["quant"]), bytes.fromhex(known["sha256"]))
    if known.get("sha256"):
        digest = bytes.fromhex(known["sha256"])
        return Tensor(name, listed["dtype"] if dtype in VAGUE else dtype, shape, digest)
    if known["layout"] == "dense" or dtype not in VAGUE:
        (data,) = parts.values()
        return Tensor(name, part_type(data) if dtype in VAGUE else dtype, shape, bytes.fromhex(data["sha256"]))
    places = {place["role"]: place for place in listed["stored"]}
    assert set(places) == set(parts), "other parts are listed"
    read = [Part(role, part_type(part), read_part(path, part, places[role])) for role, part in parts.items()]
    return of_parts(name, "parts", shape, known["layout"], read)


def compare(tenfold, path, known):
    """How many tensors of a golden file have the right digests."""
    listed = ask(tenfold, "inspect", "--json", path)["tensors"]
    printed = ask(tenfold, "digest", "--json", path)
    assert printed["content_version"] == VERSION, "content_version is %s" % printed["content_version"]
    assert len(listed) == len(known["tensors"]) == len(printed["tensors"]), "other tensors are listed"
    tensors = []
    for row, found, entry in zip(known["tensors"], printed["tensors"], listed):
        assert row["name"] == found["name"], "%r is %r" % (row["name"], found["name"])
        if row.get("unreadable"):
            assert found["sha256"] is None, "%r has a digest" % row["name"]
            continue
        tensors.append(tensor(row, entry, path))
        assert found["sha256"] == tensors[-1].digest.hex(), "%r: other digests" % row["name"]
    whole = len(tensors) == len(known["tensors"])
    expected = content(tensors).hex() if whole else None
    assert printed["content"] == expected, "content %s, expected %s" % (printed["content"], expected)
    return len(tensors) + 1


def check_fixtures(tenfold, fixtures):
    # Models that were quantized have no digests of their own: what they are compared with are numbers.
    for valid in sorted(glob.glob(os.path.join(fixtures, "*", "valid"))):
        folder = os.path.dirname(valid)
        files = count = 0
        failed, left_out = [], 0
        for case in sorted(glob.glob(os.path.join(valid, "*.json"))):
            with open(case, encoding="utf-8") as f:
                known = json.load(f)
            if "tensors" not in known:
                continue
            if known.get("structural"):
                left_out += 1
                continue
            try:
                count += compare(tenfold, subject(case, known), known)
                files += 1
            except Exception as error:
                failed.append("%s: %s: %s" % (os.path.basename(case), type(error).__name__, error))
        what = "%d golden files of %s" % (files, os.path.basename(folder))
        if left_out:
            what += ", %d without all of their data left out" % left_out
        yield {"what": what, "count": count, "error": "\n".join(failed) or None}


def check_page(page):
    with open(page, encoding="utf-8") as f:
        written = f.read().partition("<!-- vectors -->")[2].partition("<!-- /vectors -->")[0].strip()
    rows = rows_of_page()
    same = written.splitlines()[-len(rows) :] == rows
    return {"what": "test vectors of docs/digest.md", "count": len(rows), "error": None if same else "they are others"}


def main():
    if sys.argv[1] == "vectors":
        print("\n".join(rows_of_page()))
        print(ragged().digest.hex())
    else:
        tenfold, fixtures, page = sys.argv[2:]
        rows = [check_page(page), *check_fixtures(tenfold, fixtures)]
        json.dump(rows, sys.stdout)


main()
