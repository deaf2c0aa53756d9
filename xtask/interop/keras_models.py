"""Keras with its JAX backend: weights of a small model, and whole models.

`.weights.h5` files are loaded into a model of the same architecture, and what the model then holds is said. `.keras` files
are written only: tenfold reads them.
"""

import os
import tempfile
import zipfile

os.environ["KERAS_BACKEND"] = "jax"

import h5py
import keras
import numpy as np
from common import Sample, run

DTYPES = {"float32": "f32", "float16": "f16", "int32": "i32", "int64": "i64", "uint32": "u32", "int8": "i8", "uint8": "u8", "bool": "bool"}


def model(seed):
    keras.utils.set_random_seed(seed)
    layers = keras.layers
    made = keras.Sequential(
        [
            keras.Input((12, 3)),
            layers.Conv1D(4, 3, name="convolution"),
            layers.BatchNormalization(name="norm"),
            layers.Flatten(),
            layers.Dense(5, name="first"),
            layers.Dropout(0.1),
            layers.Dense(2, name="second"),
        ]
    )
    for variable in made.weights:
        variable.assign(np.random.default_rng(seed).standard_normal(variable.shape).astype("float32"))
    return made


def write(kind, path):
    made = model(1)
    if path.endswith(".keras"):
        made.save(path)
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
            return held(archive.extract("model.weights.h5", folder)), None
    made.save_weights(path)
    return held(path), None


def load(path):
    made = model(2)
    made.load_weights(path)
    with tempfile.TemporaryDirectory() as folder:
        again = os.path.join(folder, "again.weights.h5")
        made.save_weights(again)
        return held(again), None


def held(path):
    tensors = []

    def add(name, found):
        if isinstance(found, h5py.Dataset):
            values = found[()]
            tensors.append(Sample(name, DTYPES[str(values.dtype)], values.shape, values.tobytes()))

    with h5py.File(path) as file:
        file.visititems(add)
    return tensors


run(write, load)
