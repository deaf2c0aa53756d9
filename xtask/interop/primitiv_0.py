"""primitiv 0.3.0: `Model`, `Parameter` and the optimizers.

The library cannot say what a file holds, and loads a model only into one of the same structure. So the keys and shapes
are taken from the file by the small reader below, the library loads the file into objects made to fit and saves them
again, and what is in that second file is what it is said to hold.
"""

import os
import struct
import tempfile

import primitiv
from common import Sample, run
from primitiv import devices, initializers, optimizers

DEVICE = devices.Naive(1)
primitiv.Device.set_default(DEVICE)


def write(kind, path):
    if kind == "optimizer":
        # Settings that are spelled alike with 32 and with 64 bits.
        optimizers.Adam(0.5, 0.25, 0.75, 2.0**-10).save(path)
    elif kind == "parameter":
        parameter = random([7, 1, 3])
        optimizers.MomentumSGD().add(parameter)
        parameter.save(path)
    else:
        names = ["layer10.w", "layer2.w", "größe.漢字", "a\\.b", "c\\@d", "x\\\\y", "z.deep.er.w"]
        shapes = [[96, 64], [], [2, 3, 5], [1, 4], [3, 2, 1, 2], [300], [5, 5]]
        parameters = {tuple(split(name)): random(shape) for name, shape in zip(names, shapes)}
        model, keep = build(parameters)
        if kind == "model-stats":
            optimizers.AdaDelta().add(model)
        model.save(path)
        del keep
    return read(path)


def load(path):
    data_type, tensors, metadata = parse(path)
    keep = None
    if data_type == 0x400:
        prefix = next(key.split(".")[0] for key in metadata["float_configs"] if not key.startswith("Optimizer."))
        loaded = getattr(optimizers, prefix)()
    elif data_type == 0x200:
        loaded = primitiv.Parameter()
    else:
        values = {key: shape for key, stat, shape, _ in tensors if stat is None}
        loaded, keep = build({key: random(shape) for key, shape in values.items()})
    loaded.load(path)
    with tempfile.TemporaryDirectory() as folder:
        again = os.path.join(folder, os.path.basename(path))
        loaded.save(again)
        del keep
        return read(again)


def random(shape):
    return primitiv.Parameter(shape, initializers.Uniform(-1, 1))


def build(parameters):
    """A model with these parameters; the second result keeps its parts alive."""
    models = {(): primitiv.Model()}
    for key, parameter in parameters.items():
        for depth in range(1, len(key)):
            if key[:depth] not in models:
                models[key[:depth]] = primitiv.Model()
                models[key[: depth - 1]].add(key[depth - 1], models[key[:depth]])
        models[key[:-1]].add(key[-1], parameter)
    return models[()], (models, parameters)


def read(path):
    """The tensors of a file under their flat names, row by row, and its metadata."""
    stem = os.path.splitext(os.path.basename(path))[0]
    data_type, tensors, metadata = parse(path)
    samples = []
    for key, stat, shape, data in tensors:
        name = join(key) if data_type == 0x300 else stem
        samples.append(Sample(name if stat is None else name + "@" + stat, "f32", shape, row_major(shape, data)))
    return samples, metadata


def parse(path):
    """The data type, (key, statistic, shape, data) of every tensor, and the metadata."""
    with open(path, "rb") as file:
        reader = Reader(file.read())
    assert (reader.next(), reader.next()) == (0, 1)
    data_type, tensors, metadata = reader.next(), [], {}
    if data_type == 0x400:
        metadata = {"uint_configs": reader.next(), "float_configs": reader.next()}
    for _ in range({0x200: lambda: 1, 0x300: reader.next, 0x400: lambda: 0}[data_type]()):
        key = tuple(reader.next()) if data_type == 0x300 else ()
        tensors.append((key, None, *reader.tensor()))
        for _ in range(reader.next()):
            tensors.append((key, reader.next(), *reader.tensor()))
    assert reader.at == len(reader.data)
    name = {0x200: "Parameter", 0x300: "Model", 0x400: "Optimizer"}[data_type]
    return data_type, tensors, {"data_type": name, **metadata}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        assert self.at <= len(self.data)
        return self.data[self.at - n : self.at]

    def length(self, width):
        return int.from_bytes(self.take(width), "big")

    def next(self):
        marker = self.take(1)[0]
        if marker == 0xCE:
            return self.length(4)
        if marker == 0xCA:
            return struct.unpack(">f", self.take(4))[0]
        if marker in (0xC4, 0xC5, 0xC6):
            return self.take(self.length(1 << marker - 0xC4))
        if marker >> 5 == 0b101 or marker in (0xD9, 0xDA, 0xDB):
            return self.take(marker & 31 if marker < 0xC0 else self.length(1 << marker - 0xD9)).decode()
        if marker >> 4 == 9 or marker in (0xDC, 0xDD):
            return [self.next() for _ in range(marker & 15 if marker < 0xC0 else self.length(2 << marker - 0xDC))]
        if marker >> 4 == 8 or marker in (0xDE, 0xDF):
            count = marker & 15 if marker < 0xC0 else self.length(2 << marker - 0xDE)
            return {self.next(): self.next() for _ in range(count)}
        raise ValueError("marker %#x" % marker)

    def tensor(self):
        dims, batch, data = self.next(), self.next(), self.next()
        return (dims if batch == 1 else [*dims, batch]), data


def row_major(shape, data):
    places = [0]
    step = 1
    for size in shape:
        places = [place + step * index for place in places for index in range(size)]
        step *= size
    return b"".join(data[4 * place : 4 * place + 4] for place in places)


def join(key):
    escape = str.maketrans({"\\": "\\\\", ".": "\\.", "@": "\\@"})
    return ".".join(part.translate(escape) for part in key)


def split(name):
    parts, characters = [""], iter(name)
    for c in characters:
        if c == ".":
            parts.append("")
        else:
            parts[-1] += next(characters) if c == "\\" else c
    return parts


run(write, load)
