"""What `tenfold convert --dequantize` makes of models that MLX quantized, beside what MLX makes of them: the same numbers.

Run as `quantized_mlx.py TENFOLD FOLDER`. Quantizes matrices in every mode, width and group size, lets the command turn each
model into numbers, and prints a JSON array of rows: {"what", "count", "error"}.
"""

import json
import os
import subprocess
import sys

import mlx.core as mx
import numpy as np
import safetensors.numpy

AFFINE = [("affine", bits, group) for bits in (2, 3, 4, 5, 6, 8) for group in (32, 64, 128)]
SMALL_FLOATS = [("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]
TYPES = [mx.float32, mx.bfloat16, mx.float16]
ROWS, COLUMNS = 48, 384


def model(mode, bits, group):
    """Its tensors, and what their numbers are in f32."""
    tensors, numbers = {}, {}
    for n, dtype in enumerate(TYPES):
        x = (mx.random.normal((ROWS, COLUMNS), key=mx.random.key(n)) * 0.05).astype(dtype)
        codes, scales, *biases = mx.quantize(x, group_size=group, bits=bits, mode=mode)
        name = f"layers.{n}"
        tensors |= {f"{name}.weight": codes, f"{name}.scales": scales}
        if biases:
            tensors[f"{name}.biases"] = biases[0]
            # In the type of the scales, MLX would round in between.
            wide = [each.astype(mx.float32) for each in (scales, *biases)]
            numbers[f"{name}.weight"] = mx.dequantize(codes, *wide, group_size=group, bits=bits)
        else:
            said = {"group_size": group, "bits": bits, "mode": mode, "dtype": mx.float32}
            numbers[f"{name}.weight"] = mx.dequantize(codes, scales, **said)
    return tensors, numbers


def compare(tenfold, folder, mode, bits, group):
    at = os.path.join(folder, f"mlx-{mode}-{bits}-{group}")
    os.makedirs(at, exist_ok=True)
    tensors, numbers = model(mode, bits, group)
    mx.save_safetensors(os.path.join(at, "model.safetensors"), tensors, metadata={"format": "mlx"})
    said = {"group_size": group, "bits": bits, "mode": mode}
    with open(os.path.join(at, "config.json"), "w") as config:
        json.dump({"model_type": "llama", "quantization": said, "quantization_config": said}, config)
    plain = at + ".safetensors"
    subprocess.run([tenfold, "convert", "-q", "--force", "--dequantize", at, plain], check=True)
    found = safetensors.numpy.load_file(plain)
    assert set(found) == set(numbers), (sorted(found), sorted(numbers))
    wrong = 0
    for name, theirs in numbers.items():
        theirs = np.array(theirs)
        assert theirs.dtype == np.float32, theirs.dtype
        wrong += int((theirs.view(np.uint32) != found[name].view(np.uint32)).sum())
    return len(numbers) * ROWS * COLUMNS, f"{wrong} differ" if wrong else None


def main():
    tenfold, folder = sys.argv[1:]
    rows = []
    for mode, bits, group in AFFINE + SMALL_FLOATS:
        try:
            count, error = compare(tenfold, folder, mode, bits, group)
        except Exception as raised:  # noqa: BLE001 - whatever a package raises is a row
            count, error = 0, f"{type(raised).__name__}: {raised}"
        what = f"{mode}, {bits} bits, groups of {group}, as numbers"
        rows.append({"what": what, "count": count, "error": error})
    print(json.dumps(rows))


main()
