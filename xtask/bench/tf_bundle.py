"""TensorFlow as a contestant of `cargo xtask bench`.

`make COUNT DIRECTORY` writes a bundle `model` of so many small tensors, `open RUNS DIRECTORY` prints the best time in which it was
opened and all of them were listed with their types and shapes, in nanoseconds.
"""

import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402


def make(count, prefix):
    names = ["layers/%d/weight.%d" % (n // 10, n) for n in range(count)]
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * count, tensors=[tf.fill([4], float(n)) for n in range(count)])


def list_(prefix):
    reader = tf.train.load_checkpoint(prefix)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    return [(name, types[name], shape) for name, shape in shapes.items()]


job, number, directory = sys.argv[1:]
prefix = os.path.join(directory, "model")
if job == "make":
    os.makedirs(directory)
    make(int(number), prefix)
    sys.exit()
best = None
for _ in range(int(number)):
    start = time.perf_counter_ns()
    result = list_(prefix)
    took = time.perf_counter_ns() - start
    best = took if best is None else min(best, took)
    del result
print(best)
