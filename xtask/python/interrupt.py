"""How long operations go on after Ctrl-C, which is printed, and what they leave behind, which must be nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import tenfold

OPERATIONS = {
    "convert": "tenfold.convert(A, OUT / 'x.zt')",
    "convert, synced": "tenfold.convert(A, OUT / 'x.safetensors')",
    "convert, zstd 3": "tenfold.convert(A, OUT / 'x.zt', zstd=3, sync=False)",
    "convert, zstd 19": "tenfold.convert(A, OUT / 'x.zt', zstd=19, sync=False)",
    "convert, zstd 22": "tenfold.convert(A, OUT / 'x.zt', zstd=22, sync=False)",
    "convert, deflated .npz": "tenfold.convert(A, OUT / 'x.npz', options={'deflate': '9'}, sync=False)",
    "convert, deflated .h5": "tenfold.convert(A, OUT / 'x.h5', options={'deflate': '9'}, sync=False)",
    "convert, Q4_0": "tenfold.convert(A, OUT / 'x.gguf', quantize='Q4_0', sync=False)",
    "convert, cast": "tenfold.convert(A, OUT / 'x.npz', cast='float16', sync=False)",
    "digest": "tenfold.digest(A)",
    "diff": "tenfold.diff(A, B)",
    "stats": "tenfold.stats(A, bins=50)",
    "verify": "tenfold.verify(A, content=True)",
    "load": "tenfold.load(A, copy=True)",
    "load, compressed": "tenfold.load(Z, copy=True)",
    "tobytes, compressed": "tenfold.open(Z)['t0'].tobytes()",
    "save": "tenfold.save(OUT / 'x.safetensors', arrays, sync=False)",
    "split": "tenfold.split(A, OUT / 'parts', by=4)",
    "scan": "tenfold.scan(A)",
}

PROGRAM = """
import signal, sys, tenfold
from pathlib import Path
# A shell that starts this in the background lets it ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
A, B, Z, OUT = (Path(p) for p in sys.argv[1:5])
arrays = tenfold.load(A) if "arrays" in sys.argv[5] else None
print("ready", flush=True)
try:
    while True:
        for left in OUT.iterdir():
            left.unlink() if left.is_file() else [f.unlink() for f in left.iterdir()] and left.rmdir()
        exec(sys.argv[5])
except KeyboardInterrupt:
    pass
"""


def main() -> None:
    folder = Path(sys.argv[1])
    out = folder / "interrupted"
    out.mkdir(parents=True, exist_ok=True)
    a, b, z = folder / "interrupt-a.safetensors", folder / "interrupt-b.safetensors", folder / "interrupt.zt"
    rng = np.random.default_rng(1)
    arrays = {f"t{n}": rng.standard_normal((4096, 4096)).astype("float32") for n in range(4)}
    for path in (a, b):
        tenfold.save(path, arrays, sync=False)
    tenfold.convert(a, z, zstd=1, sync=False, force=True)
    print("| operation | seconds after Ctrl-C | left behind |\n|---|---|---|")
    wanted = sys.argv[2:]
    is_clean = True
    for name, code in OPERATIONS.items():
        if wanted and name not in wanted:
            continue
        longest, left = 0.0, set()
        for turn in range(3):
            arguments = [sys.executable, "-c", PROGRAM, *map(str, (a, b, z, out)), code]
            process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.3 + 0.17 * turn)
            start = time.perf_counter()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
            longest = max(longest, time.perf_counter() - start)
            # What `exec` raised counts as not caught when Python ends.
            if process.returncode not in (0, -signal.SIGINT):
                print(process.returncode, said.decode().strip())
                is_clean = False
                break
            # What was finished before the signal may be there.
            left |= {found.name for found in out.iterdir() if found.name not in ("x.zt", "x.npz", "x.h5", "x.gguf", "parts")}
            left -= {"x.safetensors"}
        is_clean = is_clean and not left
        print(f"| {name} | {longest:.2f} | {', '.join(sorted(left)) or 'nothing'} |", flush=True)
    for path in (a, b, z):
        os.unlink(path)
    sys.exit(not is_clean)


if __name__ == "__main__":
    main()
