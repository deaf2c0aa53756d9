"""What `tenfold convert --quantize` writes, beside gguf-py: the same blocks of the same numbers, and numbers of all blocks.

Run as `quantized_gguf.py TENFOLD FOLDER`. Writes matrices of several kinds, lets the command quantize them, and prints a JSON array
of rows: {"what", "count", "error"}. Types that gguf-py quantizes to must have equal bytes, but for the sign of scales of 0; all types
must be read by it as the numbers that tenfold reads.
"""

import json
import os
import subprocess
import sys

import gguf
import numpy as np

KINDS = gguf.GGMLQuantizationType
# gguf-py has no quantizer for the others.
SAME = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"]
READ = [*SAME, "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "IQ3_S", "IQ3_XXS", "IQ2_S"]
ROWS, COLUMNS = 32, 1024


def numbers():
    random = np.random.default_rng(3)
    yield "normal", random.normal(0, 0.05, (ROWS, COLUMNS))
    yield "heavy", random.standard_t(2, (ROWS, COLUMNS))
    yield "ternary", random.integers(-1, 2, (ROWS, COLUMNS)) * 0.25
    yield "zero", np.zeros((ROWS, COLUMNS))


def main():
    tenfold, folder = sys.argv[1:]
    sets = {name: values.astype(np.float32) for name, values in numbers()}
    source = os.path.join(folder, "numbers.gguf")
    writer = gguf.GGUFWriter(source, "tenfold")
    for name, values in sets.items():
        writer.add_tensor(name + ".weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    rows = []
    for kind in READ:
        try:
            rows += compare(tenfold, folder, source, sets, kind)
        except Exception as error:  # noqa: BLE001 - whatever a package raises is a row
            rows.append({"what": kind, "count": 0, "error": f"{type(error).__name__}: {error}"})
    print(json.dumps(rows))


def compare(tenfold, folder, source, sets, kind):
    made, plain = (os.path.join(folder, f"{kind}{end}") for end in (".gguf", ".plain.gguf"))
    run = lambda *args: subprocess.run([tenfold, "convert", "-q", "--force", *args], check=True)
    run(source, made, "--quantize", f"{kind}:*")
    run(made, plain, "--dequantize")
    blocks = {tensor.name: tensor for tensor in gguf.GGUFReader(made).tensors}
    read = {tensor.name: tensor.data for tensor in gguf.GGUFReader(plain).tensors}
    same = wrong = count = 0
    for name, values in sets.items():
        tensor = blocks[name + ".weight"]
        assert tensor.tensor_type == KINDS[kind], tensor.tensor_type
        theirs = gguf.quants.dequantize(tensor.data, KINDS[kind])
        ours = read[name + ".weight"].reshape(theirs.shape)
        wrong += int((theirs.view(np.uint32) != ours.view(np.uint32)).sum())
        count += ours.size
        # The sign of a scale of 0 is another one.
        if kind in SAME and name != "zero":
            same += int((gguf.quants.quantize(values, KINDS[kind]) != tensor.data).sum())
    rows = [{"what": f"{kind} as numbers", "count": count, "error": f"{wrong} differ" if wrong else None}]
    if kind in SAME:
        rows.append({"what": f"{kind} as blocks", "count": count, "error": f"{same} bytes differ" if same else None})
    return rows


main()
