"""onnx 1.23: every type of the format, in the model and in a file beside it; what it loads must pass its checker."""

import os

import ml_dtypes
import numpy as np
import onnx
from common import Sample, run, samples
from onnx import TensorProto, helper, numpy_helper

# Our names, those of onnx, and those of numpy.
TYPES = {
    "f32": (TensorProto.FLOAT, np.float32), "u8": (TensorProto.UINT8, np.uint8), "i8": (TensorProto.INT8, np.int8),
    "u16": (TensorProto.UINT16, np.uint16), "i16": (TensorProto.INT16, np.int16), "i32": (TensorProto.INT32, np.int32),
    "i64": (TensorProto.INT64, np.int64), "bool": (TensorProto.BOOL, np.bool_), "f16": (TensorProto.FLOAT16, np.float16),
    "f64": (TensorProto.DOUBLE, np.float64), "u32": (TensorProto.UINT32, np.uint32),
    "u64": (TensorProto.UINT64, np.uint64), "c64": (TensorProto.COMPLEX64, np.complex64),
    "c128": (TensorProto.COMPLEX128, np.complex128), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "f8_e4m3": (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
    "f8_e4m3fnuz": (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
    "f8_e5m2": (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
    "f8_e5m2fnuz": (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
    "f8_e8m0": (TensorProto.FLOAT8E8M0, ml_dtypes.float8_e8m0fnu), "f4_e2m1": (TensorProto.FLOAT4E2M1, None),
    "u4": (TensorProto.UINT4, None), "i4": (TensorProto.INT4, None), "u2": (TensorProto.UINT2, None),
    "i2": (TensorProto.INT2, None), "f6_e2m3": (TensorProto.FLOAT6E2M3, None), "f6_e3m2": (TensorProto.FLOAT6E3M2, None),
}  # fmt: skip
SMALL = {"f4_e2m1": 4, "u4": 4, "i4": 4, "u2": 2, "i2": 2, "f6_e2m3": 6, "f6_e3m2": 6}


def write(kind, path):
    tensors = list(samples(kind.split("-")[0], [dtype for dtype in TYPES if dtype not in SMALL], scalar=True))
    graph = helper.make_graph([], "g", [], [], [initializer(t) for t in tensors])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model.producer_name = ""
    external = {"save_as_external_data": True, "location": os.path.basename(path) + ".data", "size_threshold": 0}
    onnx.save(model, path, **(external if kind.endswith("-external") else {}))
    return tensors, None


def initializer(t):
    tensor = TensorProto(name=t.name, data_type=TYPES[t.dtype][0], raw_data=t.data)
    tensor.dims.extend(t.shape)
    return tensor


def load(path):
    onnx.checker.check_model(path)
    return [describe(tensor) for tensor in onnx.load(path).graph.initializer], None


def describe(tensor):
    dtype = next(ours for ours, (theirs, _) in TYPES.items() if theirs == tensor.data_type)
    array = numpy_helper.to_array(tensor)
    if dtype not in SMALL:
        assert array.dtype == TYPES[dtype][1], (array.dtype, dtype)
        return Sample(tensor.name, dtype, array.shape, array.tobytes())
    # Elements of less than a byte, the first in the lowest bits.
    bits = SMALL[dtype]
    packed = 0
    for place, value in enumerate(array.reshape(-1).view(np.uint8)):
        packed |= (int(value) & ((1 << bits) - 1)) << (place * bits)
    return Sample(tensor.name, dtype, array.shape, packed.to_bytes((array.size * bits + 7) // 8, "little"))


run(write, load)
