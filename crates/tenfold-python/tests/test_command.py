"""The command inside of the package is the program that cargo builds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
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


def test_it_has_the_commands_of_the_program() -> None:
    """All of them, with the same options: the documentation has their help from the program that cargo builds."""
    page = Path("docs/cli.md").read_text()
    documented = re.findall(r"^##+ (tenfold[a-z ]*)\n\n```text\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    assert {"tenfold", "tenfold view", "tenfold convert", "tenfold plan stats"} <= {name for name, _ in documented}
    # Without the width of lines that pytest's readline says behind Python's back.
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    for name, help in documented:
        printed = run(*name.split()[1:], "--help", env=plain).stdout
        # The page has no spaces at the ends of lines.
        assert [line.rstrip() for line in printed.splitlines()] == help.splitlines(), name


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_viewer(mixed: Path, number: int) -> None:
    started = [sys.executable, "-m", "tenfold", "view", "--no-open", str(mixed)]
    process = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    try:
        with urllib.request.urlopen(address.partition("#")[0]) as page:
            assert b"<html" in page.read().lower()
    finally:
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 128 + number


def test_a_closed_pipe_is_no_error(mixed: Path) -> None:
    code = f"{sys.executable} -m tenfold inspect --json {mixed} | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
