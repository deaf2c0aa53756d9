"""What the programs that change files have in common: seeded changes of bytes, and a fair hearing for the reference.

PROGRAM FIXTURES OUTPUT COUNT: writes COUNT files to the directory OUTPUT, made from the fixtures and from nothing. For each
it prints a line of JSON with what the reference package sees in it: `refused` and why, or `tensors` and `metadata`. The same
files come every time.
"""

import json
import os
import random
import resource
import signal
import sys
import warnings

SEED = 20_261_116
# The reference gets this many seconds and bytes for a file. Whoever needs more has refused it.
SECONDS = 5
MEMORY = 4 << 30

BYTES = b"\0\1\2\3\7\x08\x09\n\r\x20\x7f\x80\xfe\xff"
NUMBERS = [0, 1, 2, 3, 4, 7, 8, 31, 32, 33, 63, 64, 65, 255, 256, 0xFFFF, 1 << 16, 0x7FFFFFFF, 1 << 31, 0xFFFFFFFF,
           1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 8]  # fmt: skip


# What is said of a file that everybody must take.
PLAIN = "nothing odd"


class Refused(Exception):
    """What the reference would refuse if it were asked in the usual way."""


def changed(rng, data, begin=0, end=None):
    """The bytes with one change, seldom more, between two places. Also says what was done."""
    data = bytearray(data)
    done = []
    while not done or rng.random() < 0.2:
        last = min(len(data), len(data) if end is None else end)
        at = rng.randrange(begin, max(last, begin + 1))
        done.append(change(rng, data, at))
    return bytes(data), ", ".join(done)


def change(rng, data, at):
    kind = rng.random()
    if kind < 0.25 and at < len(data):
        data[at] ^= 1 << rng.randrange(8)
        return f"a bit at {at}"
    if kind < 0.5 and at < len(data):
        data[at] = rng.choice(BYTES) if rng.random() < 0.5 else rng.randrange(256)
        return f"a byte at {at}"
    if kind < 0.75:
        width = rng.choice([2, 4, 8])
        number = rng.choice(NUMBERS) % (1 << 8 * width)
        data[at : at + width] = number.to_bytes(width, rng.choice(["little", "big"]))[: max(len(data) - at, 0)]
        return f"{number} in {width} bytes at {at}"
    if kind < 0.83:
        data.insert(at, rng.choice(BYTES))
        return f"a byte more at {at}"
    if kind < 0.91:
        gone = rng.choice([1, 1, 2, 8])
        del data[at : at + gone]
        return f"{gone} bytes less at {at}"
    if kind < 0.96:
        del data[at:]
        return f"cut off at {at}"
    data += bytes(rng.randrange(256) for _ in range(rng.choice([1, 8, 40])))
    return "bytes at the end"


def fixtures(directory, extension, longest):
    """The fixtures that are short enough, valid ones and others, in the order of their names."""
    for kind in ["valid", "reject"]:
        folder = os.path.join(directory, kind)
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if name.endswith(extension) and os.path.isfile(path) and 0 < os.path.getsize(path) <= longest:
                with open(path, "rb") as file:
                    yield kind, name, file.read()


def run(extension, make, see, apart=False):
    """`make` yields contents and what they are without end, `see` says what the reference finds at a path, `apart` in a
    process of its own."""
    directory, output, count = sys.argv[1:]
    warnings.simplefilter("ignore")
    # Beside what the package takes for itself.
    with open("/proc/self/statm") as file:
        memory = int(file.read().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    signal.signal(signal.SIGALRM, out_of_time)
    files = make(random.Random(SEED), directory)
    for number in range(int(count)):
        content, what = next(files)
        name = f"{number:05}{extension}"
        path = os.path.join(output, name)
        with open(path, "wb") as file:
            file.write(content)
        seen = hear_apart(see, path) if apart else hear(see, path)
        print(json.dumps({"file": name, "change": what} | seen, allow_nan=False))


def hear(see, path):
    signal.alarm(SECONDS)
    try:
        return see(path)
    # Whatever it says: packages refuse with errors of every kind.
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"[:300]}
    finally:
        signal.alarm(0)


def hear_apart(see, path):
    """The same for packages that crash: what ends the process is a refusal."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        # Libraries in C do not see the alarm of Python.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        with os.fdopen(write, "w") as file:
            file.write(json.dumps(hear(see, path), allow_nan=False))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    return json.loads(said) if said else {"refused": f"it ends with signal {os.WTERMSIG(status)}"}


def out_of_time(*_):
    raise Refused("it takes too long")
