"""magnetron 0.1.2: `StorageArchive`. It writes tensors, but what it loads again is the metadata alone."""

import ctypes

import magnetron
from common import METADATA, run, samples
from magnetron.io import StorageArchive

DTYPES = {"f32": magnetron.float32, "f16": magnetron.float16, "bool": magnetron.boolean, "i32": magnetron.int32}


def write(kind, path):
    tensors = list(samples(kind, DTYPES, scalar=False))
    with StorageArchive(path, "w") as archive:
        for t in tensors:
            tensor = magnetron.Tensor.empty(*t.shape, dtype=DTYPES[t.dtype])
            ctypes.memmove(tensor.data_ptr, t.data, len(t.data))
            archive[t.name] = tensor
        for key, value in METADATA.items():
            archive[key] = value
    return tensors, METADATA


def load(path):
    with StorageArchive(path, "r") as archive:
        return [], archive.metadata()


run(write, load)
