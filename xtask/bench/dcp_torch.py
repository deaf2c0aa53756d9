"""torch as a contestant of `cargo xtask bench`, with distributed checkpoints.

`make MIB DIRECTORY` writes a checkpoint of 32 tensors in two files, `convert DIRECTORY OUTPUT` makes one file of it, as torch's
own program does.
"""

import sys

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save


def make(mib, directory):
    rows = (mib << 20) // 4 // 32 // 128
    state = {"layers.%d.weight" % n: torch.full((rows, 128), float(n)) for n in range(32)}
    dcp.save(state, storage_writer=dcp.FileSystemWriter(directory, thread_count=2), no_dist=True)


job, first, second = sys.argv[1:]
if job == "make":
    make(int(first), second)
else:
    dcp_to_torch_save(first, second)
