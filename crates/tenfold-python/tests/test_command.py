"""The command inside of the package is the program that cargo builds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tenfold


def run(*args: object, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "tenfold", *map(str, args)], capture_output=True, text=True, check=False, **more
    )


def test_it_runs(mixed: Path, tmp_path: Path) -> None:
    listed = run("inspect", mixed)
    assert listed.returncode == 0 and "a.weight" in listed.stdout
    assert run("--version").stdout.startswith("tenfold ")
    assert "Usage" in run("--help").stdout
    assert run("inspect", "nowhere.zt").returncode == 2
    assert run("convert", mixed, tmp_path / "a.zt").returncode == 0
    assert tenfold.diff(mixed, tmp_path / "a.zt")
    assert run("diff", mixed, tmp_path / "a.zt").returncode == 0
    assert run("nonsense").returncode == 2


def test_it_is_installed_as_a_script(mixed: Path) -> None:
    script = Path(sys.executable).with_name("tenfold")
    if not script.exists():
        pytest.skip("the package is not installed here")
    assert "a.weight" in subprocess.check_output([script, "inspect", mixed], text=True)


def test_it_imports_nothing_that_is_slow() -> None:
    code = "import sys; sys.argv[1:] = ['--version']; from tenfold.__main__ import main; main(); print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()[-1] == "False"


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_it_and_leave_nothing(tmp_path: Path, number: int) -> None:
    path = tmp_path / "big.safetensors"
    random = np.random.default_rng(1).integers(0, 255, 128 << 20, dtype="uint8")
    tenfold.save(path, {"t": random}, sync=False)
    started = [sys.executable, "-m", "tenfold", "convert", str(path), str(tmp_path / "a.zt"), "--zstd", "19"]
    process = subprocess.Popen(started, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    # It has begun by then, and takes many times as long.
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert [found.name for found in tmp_path.iterdir()] == ["big.safetensors"]


def test_a_closed_pipe_is_no_error(mixed: Path) -> None:
    code = f"{sys.executable} -m tenfold inspect --json {mixed} | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
