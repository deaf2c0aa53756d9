"""A large ONNX model: `make MIB FILE` writes one of 100 tensors, `list FILE` loads it and prints their names and shapes."""

import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

job, *args = sys.argv[1:]
if job == "make":
    mib, path = int(args[0]), args[1]
    count = mib * (1 << 20) // 4 // 100
    tensors = [numpy_helper.from_array(np.full(count, n, "f4"), "layers.%d.weight" % n) for n in range(100)]
    graph = helper.make_graph([], "g", [], [], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
else:
    for tensor in onnx.load(args[0]).graph.initializer:
        print(tensor.name, list(tensor.dims))
