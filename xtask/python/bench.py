"""How long the Python package takes beside safetensors, NumPy, gguf, h5py and PyTorch: the best of several turns in one run."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import load_file as load_numpy
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import load_file as load_torch

import tenfold

warnings.simplefilter("ignore")


def best(turns: int, *contestants: Callable[[], object]) -> list[float]:
    """Milliseconds of each, taking turns."""
    times = [float("inf")] * len(contestants)
    for _ in range(turns):
        for place, contestant in enumerate(contestants):
            start = time.perf_counter()
            kept = contestant()
            times[place] = min(times[place], 1000 * (time.perf_counter() - start))
            del kept
    return times


def row(what: str, ours: float, theirs: float | None, goal: float | None, other: str = "safetensors") -> None:
    ratio = "" if not theirs else f"{ours / theirs:.3g}"
    met = "" if goal is None or not theirs else "yes" if ours / theirs <= goal else "no"
    said = "" if theirs is None else f"{theirs:.3g} ({other})"
    print(f"| {what} | {ours:.3g} | {said} | {ratio} | {'' if goal is None else goal} | {met} |", flush=True)


def longest_wait(work: Callable[[], object]) -> float:
    """Milliseconds that no other thread of Python ran while something was done, at the longest."""
    over = threading.Event()
    longest = 0.0

    def tick() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not over.is_set():
            time.sleep(0.0005)
            now = time.perf_counter()
            longest = max(longest, now - last)
            last = now

    ticking = threading.Thread(target=tick)
    ticking.start()
    kept = work()
    over.set()
    ticking.join()
    del kept
    return 1000 * longest


def touched(arrays: dict[str, np.ndarray]) -> float:
    return float(sum(array.reshape(-1).view(np.uint8)[::4096].sum(dtype=np.int64) for array in arrays.values()))


def main() -> None:
    quick = "--quick" in sys.argv
    folder = Path(sys.argv[-1])
    folder.mkdir(parents=True, exist_ok=True)
    many, large = folder / "python-many.safetensors", folder / "python-large.safetensors"
    count = 5_000 if quick else 100_000
    size = 64 << 20 if quick else 1 << 30
    turns = 3 if quick else 5
    save_numpy({f"layer.{n}.weight": np.full(4, n, "float32") for n in range(count)}, many)
    block = 16 << 20
    save_numpy({f"t{n}": np.full(block // 4, n, "float32") for n in range(size // block)}, large)
    print("| what (ms) | ours | theirs | ratio | goal | met |")
    print("|---|---|---|---|---|---|")

    def keys(path: Path) -> list[str]:
        with safe_open(path, framework="np") as file:
            return list(file.keys())

    ours, theirs = best(turns, lambda: list(tenfold.open(many)), lambda: keys(many))
    row(f"open and list {count} tensors", ours, theirs, 0.2)
    archive = tenfold.open(many)
    name = f"layer.{count // 2}.weight"
    tensor = archive[name]
    loops = 20_000

    def repeat(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(loops):
                work()

        return run

    with safe_open(many, framework="np") as as_numpy, safe_open(many, framework="pt") as as_torch:
        (ours,) = best(turns, repeat(lambda: archive[name]))
        row("archive[name], 20 000 times", ours, None, None)
        ours, theirs = best(turns, repeat(tensor.numpy), repeat(lambda: as_numpy.get_tensor(name)))
        row("a small tensor to NumPy, 20 000 times", ours, theirs, 0.5)
        ours, theirs = best(turns, repeat(tensor.torch), repeat(lambda: as_torch.get_tensor(name)))
        row("a small tensor to PyTorch, 20 000 times", ours, theirs, 0.2)
    ours, theirs = best(turns, lambda: tenfold.load(many), lambda: load_numpy(many))
    row(f"load {count} to NumPy", ours, theirs, 0.4)
    ours, theirs = best(turns, lambda: tenfold.load(many, framework="torch"), lambda: load_torch(many))
    row(f"load {count} to PyTorch", ours, theirs, 0.25)

    mib = size >> 20
    ours, theirs = best(turns, lambda: tenfold.load(large), lambda: load_numpy(large))
    row(f"load {mib} MiB to NumPy, mapped", ours, theirs, 0.01)
    ours, theirs = best(turns, lambda: touched(tenfold.load(large)), lambda: touched(load_numpy(large)))
    row(f"load {mib} MiB to NumPy, mapped, every page touched", ours, theirs, 0.15)
    ours, theirs = best(turns, lambda: tenfold.load(large, copy=True), lambda: load_numpy(large))
    row(f"load {mib} MiB to NumPy, own memory", ours, theirs, 0.3)
    ours, theirs = best(turns, lambda: tenfold.load(large, copy=True), lambda: np.fromfile(large, np.uint8))
    row(f"load {mib} MiB to NumPy, own memory", ours, theirs, 0.7, "np.fromfile")
    ours, theirs = best(turns, lambda: tenfold.load(large, framework="torch"), lambda: load_torch(large))
    row(f"load {mib} MiB to PyTorch", ours, theirs, 0.5)
    ours, theirs = best(
        turns,
        lambda: tenfold.load(large, framework="torch", mmap=False),
        lambda: load_torch(large, backend="pread"),
    )
    row(f"load {mib} MiB to PyTorch, not mapped", ours, theirs, 0.4)

    def one(framework: str) -> object:
        with safe_open(large, framework=framework) as file:
            return file.get_tensor("t1")

    ours, theirs = best(turns, lambda: tenfold.open(large)["t1"].numpy(), lambda: one("np"))
    row("one of many tensors to NumPy", ours, theirs, 0.1)
    ours, theirs = best(turns, lambda: tenfold.open(large)["t1"].torch(), lambda: one("pt"))
    row("one of many tensors to PyTorch", ours, theirs, 0.5)

    arrays = load_numpy(large)
    target = folder / "python-saved.safetensors"

    def save(**options: bool) -> None:
        target.unlink(missing_ok=True)
        tenfold.save(target, arrays, **options)

    def save_theirs() -> None:
        target.unlink(missing_ok=True)
        save_numpy(arrays, target)

    synced, unsynced, theirs = best(turns, save, lambda: save(sync=False), save_theirs)
    row(f"save {mib} MiB, synced (theirs is not)", synced, theirs, 0.8)
    row(f"save {mib} MiB, not synced", unsynced, theirs, 0.35)
    copied = folder / "python-copied.safetensors"
    (theirs,) = best(turns, lambda: subprocess.run(["cp", large, copied], check=True))
    row(f"save {mib} MiB, not synced", unsynced, theirs, 1.05, "cp")
    copied.unlink()

    waits = [
        (
            min(longest_wait(ours) for _ in range(turns)),
            min(longest_wait(theirs) for _ in range(turns)),
        )
        for ours, theirs in (
            (lambda: tenfold.load(large, copy=True), lambda: load_numpy(large)),
            (lambda: save(sync=False), save_theirs),
        )
    ]
    row(f"longest time no other thread ran while loading {mib} MiB (goal: 10 ms)", *waits[0], None)
    row(f"longest time no other thread ran while saving {mib} MiB (goal: 10 ms)", *waits[1], None)
    target.unlink()

    plain = folder / "python-large.npy"
    np.save(plain, arrays["t1"])
    ours, theirs = best(turns, lambda: tenfold.open(plain)["python-large"].numpy(), lambda: np.load(plain, mmap_mode="r"))
    row("a .npy file, mapped", ours, theirs, None, "np.load")
    pickled = folder / "python-large.pt"
    torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, pickled)
    ours, theirs = best(turns, lambda: tenfold.load(pickled, framework="torch"), lambda: torch.load(pickled, mmap=True))
    row(f"a .pt file of {mib} MiB to PyTorch", ours, theirs, None, "torch.load(mmap=True)")
    pickled.unlink()
    import gguf
    import h5py

    sets = folder / "python-large.h5"
    tenfold.convert(large, sets, force=True, sync=False)

    def read_sets() -> list[np.ndarray]:
        with h5py.File(sets) as file:
            return [file[name][...] for name in file]

    ours, theirs = best(turns, lambda: tenfold.load(sets, copy=True), read_sets)
    row(f"an .h5 file of {mib} MiB to NumPy, own memory", ours, theirs, None, "h5py")
    sets.unlink()

    model = folder / "python-large.gguf"
    tenfold.convert(large, model, force=True, sync=False)
    ours, theirs = best(turns, lambda: tenfold.load(model), lambda: [t.data for t in gguf.GGUFReader(model).tensors])
    row(f"a GGUF file of {mib} MiB to NumPy", ours, theirs, None, "GGUFReader")
    for made in (many, large, plain, model):
        made.unlink()


if __name__ == "__main__":
    main()
