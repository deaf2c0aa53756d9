"""A model that onnxruntime runs: `write FILE EXPECTED` makes it and says what it computes, `check FILE EXPECTED` compares.

Its weights are used by nodes, by a subgraph and as an input of the graph, and lie in raw data and in typed fields.
"""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

INPUT = np.random.default_rng(7).standard_normal((5, 64)).astype("f4")


def compute(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options).run(None, {"x": INPUT})[0]


def model():
    rng = np.random.default_rng(1)
    weight = numpy_helper.from_array(rng.standard_normal((64, 32)).astype("f4"), "W")
    bias = numpy_helper.from_array(rng.standard_normal(32).astype("f4"), "b")
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [1], [2.5])
    condition = helper.make_tensor("condition", TensorProto.BOOL, [], [True])
    inner = numpy_helper.from_array(np.full(32, 3, "f4"), "inner")
    value = helper.make_tensor_value_info
    then = [helper.make_node("Add", ["b", "inner"], ["then_out"])]
    then = helper.make_graph(then, "then", [], [value("then_out", TensorProto.FLOAT, [32])], [inner])
    other = [helper.make_node("Identity", ["b"], ["else_out"])]
    other = helper.make_graph(other, "else", [], [value("else_out", TensorProto.FLOAT, [32])])
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["h"]),
        helper.make_node("Mul", ["h", "scale"], ["scaled"]),
        helper.make_node("If", ["condition"], ["shift"], then_branch=then, else_branch=other),
        helper.make_node("Add", ["scaled", "shift"], ["y"]),
    ]
    inputs = [value("x", TensorProto.FLOAT, ["n", 64]), value("scale", TensorProto.FLOAT, [1])]
    outputs = [value("y", TensorProto.FLOAT, ["n", 32])]
    graph = helper.make_graph(nodes, "main", inputs, outputs, [weight, bias, scale, condition])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


job, path, expected = sys.argv[1:]
if job == "write":
    onnx.save(model(), path)
    np.save(expected, compute(path))
onnx.checker.check_model(path, full_check=True)
result = compute(path)
assert np.array_equal(result, np.load(expected)), "it computes something else"
print(len(onnx.load(path, load_external_data=False).graph.initializer))
