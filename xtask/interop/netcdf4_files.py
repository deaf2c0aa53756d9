"""netCDF4-python: the classic formats, with records."""

import netCDF4
import numpy as np
from common import Sample, run, sample

OLD = {"i8": "i1", "i16": "i2", "i32": "i4", "f32": "f4", "f64": "f8"}
NEW = {**OLD, "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i64": "i8"}
FORMATS = {"cdf1": "NETCDF3_CLASSIC", "cdf2": "NETCDF3_64BIT_OFFSET", "cdf5": "NETCDF3_64BIT_DATA"}


def write(kind, path):
    version, *form = kind.split("-")
    dtypes = NEW if version == "cdf5" else OLD
    tensors = [sample("t_" + dtype, dtype, [4, 5]) for dtype in dtypes]
    if not form:
        tensors += [sample("rank_%d" % rank, "i32", [3, 1, 2, 1, 2, 2][:rank]) for rank in range(5)]
    with netCDF4.Dataset(path, "w", format=FORMATS[version]) as file:
        file.set_fill_off()
        file.title = "probe"
        file.set_auto_mask(False)
        for t in tensors:
            names = []
            for axis, length in enumerate(t.shape):
                name = "record" if form and axis == 0 else "d%d_%d" % (axis, length)
                if name not in file.dimensions:
                    file.createDimension(name, None if name == "record" else length)
                names.append(name)
            variable = file.createVariable(t.name, dtypes[t.dtype], names)
            variable.set_auto_maskandscale(False)
            variable[...] = np.frombuffer(t.data, "<" + dtypes[t.dtype]).reshape(t.shape)
    return tensors, None


def load(path):
    tensors = []
    with netCDF4.Dataset(path) as file:
        for name, variable in file.variables.items():
            variable.set_auto_maskandscale(False)
            values = np.asarray(variable[...])
            if values.dtype.kind in "SU":
                continue
            plain = values.astype(values.dtype.newbyteorder("<"))
            dtype = next(ours for ours, theirs in NEW.items() if np.dtype(theirs) == plain.dtype)
            if getattr(variable, "dtype", None) is not None and "dtype" in variable.ncattrs() and variable.getncattr("dtype") == "bool":
                dtype = "bool"
            tensors.append(Sample(name, dtype, plain.shape, plain.tobytes()))
    return tensors, None


run(write, load)
