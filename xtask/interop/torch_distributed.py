"""torch: distributed checkpoints of one process, in one file and in several, and compressed."""

import torch
import torch.distributed.checkpoint as dcp
from common import METADATA, run, samples
from torch_save import DTYPES, tensor


def write(kind, path):
    known = [dtype for dtype in DTYPES if dtype != "f4_e2m1"]
    tensors = list(samples("basic" if kind == "basic" else "full", known, scalar=True))
    values = {t.name: tensor(t) for t in tensors}
    metadata = {} if kind == "basic" else METADATA
    options = {}
    if kind == "threads":
        options = {"thread_count": 3}
    elif kind == "items":
        options = {"single_file_per_rank": False}
    elif kind == "zstd":
        from torch.distributed.checkpoint._extension import ZStandard

        options = {"_extensions": [ZStandard()]}
    writer = dcp.FileSystemWriter(path, **options)
    dcp.save({**values, **metadata}, storage_writer=writer, no_dist=True)
    # Nested names are joined, and so are these, which have dots already.
    return tensors, metadata


def load(path):
    raise SystemExit("tenfold does not write distributed checkpoints")


if __name__ == "__main__":
    torch.manual_seed(0)
    run(write, load)
