"""Tensors of several parts: sparse ones to write, and the bytes that a loaded one stands for."""

from collections import namedtuple

import numpy as np
from common import Sample, sample

SparseSample = namedtuple("SparseSample", "name layout shape parts dense")
Part = namedtuple("Part", "data width")  # bytes, bytes of one element


def sparse_samples():
    """A matrix in rows and a tensor of rank 3 by coordinates, each with a row and a column that have no entry."""
    values = np.frombuffer(sample("values", "f32", [5]).data, np.float32)
    matrix = {"values": values, "indices": u64(1, 3, 0, 3, 2), "indptr": u64(0, 2, 2, 4, 5)}
    yield of("csr", "sparse_csr", [4, 5], matrix)
    cube = {"values": values, "coords": u64(0, 0, 1, 1, 1, 2, 0, 0, 1, 2, 0, 3, 1, 1, 0)}
    yield of("coo", "sparse_coo", [2, 3, 4], cube)


def of(name, layout, shape, parts):
    bare = {role: Part(array.tobytes(), array.itemsize) for role, array in parts.items()}
    return SparseSample(name, layout, shape, parts, Sample(name, "f32", shape, canonical(layout, shape, bare)))


def u64(*numbers):
    return np.array(numbers, np.uint64)


def canonical(layout, shape, parts):
    """The bytes whose digest names a tensor, written out from the layout's definition and not with a sparse library.

    Dense and sparse: the dense row-major elements. Anything else: each part in the order of the names, as its length
    and its bytes.
    """
    layout = layout.removeprefix("zt.").removesuffix("/1")
    # Blocks of quantized values count as their bytes.
    if layout == "dense" or layout.startswith("gguf."):
        return parts["data"].data
    if layout == "sparse_csr":
        rows = integers(parts["indptr"])
        cells = [(row, at) for row in range(shape[0]) for at in range(rows[row], rows[row + 1])]
        columns = integers(parts["indices"])
        return scatter(shape, parts["values"], [(row, columns[at]) for row, at in cells])
    if layout == "sparse_coo":
        axes = np.array(integers(parts["coords"]), np.int64).reshape(len(shape), -1)
        return scatter(shape, parts["values"], [tuple(axes[:, at]) for at in range(axes.shape[1])])
    joined = b""
    for role in sorted(parts):
        joined += len(parts[role].data).to_bytes(8, "little") + parts[role].data
    return joined


def integers(part):
    return [int(n) for n in np.frombuffer(part.data, "<u%d" % part.width)]


def scatter(shape, values, places):
    """Values put into zeros; they move as opaque bytes, so that no type has to be known."""
    element = np.dtype("V%d" % values.width)
    out = np.zeros(shape, element)
    for value, place in zip(np.frombuffer(values.data, element), places, strict=True):
        out[place] = value
    return out.tobytes()
