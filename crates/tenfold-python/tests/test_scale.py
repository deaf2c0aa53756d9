"""Plans: their items anywhere, and what they come to."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import tenfold


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    tenfold.save(path, {f"layer.{n}": np.full((64, 64), n, np.float32) for n in range(20)})
    return path


def test_items_run_anywhere_and_come_to_what_one_process_writes(model, tmp_path):
    tenfold.convert(model, tmp_path / "one.gguf")
    plan = tenfold.plan("convert", model, tmp_path / "many.gguf", items=4)
    sent = pickle.loads(pickle.dumps(plan))
    assert sent == plan and pickle.loads(pickle.dumps(plan.items)) == plan.items
    for item in reversed(range(len(plan.items))):
        assert sent.run(item) == "done"
        assert plan.run(item) == "before"
    assert not (tmp_path / "many.gguf").exists()
    assert plan.missing == []
    written = plan.join(check=True)
    assert (written.path, written.failed) == (tmp_path / "many.gguf", ())
    assert written.nbytes == (tmp_path / "many.gguf").stat().st_size
    assert (tmp_path / "many.gguf").read_bytes() == (tmp_path / "one.gguf").read_bytes()
    assert plan.run(0) == "joined"


@pytest.mark.parametrize("verb", ["digest", "verify", "stats"])
def test_reports_are_those_of_one_process(model, tmp_path, verb):
    plan = tenfold.plan(verb, model, items=3, state=tmp_path / "state")
    assert len(plan.items) == 3
    for item in range(3):
        plan.run(item)
    assert plan.join() == getattr(tenfold, verb)(model)


@pytest.mark.parametrize("verb", ["digest", "verify", "stats"])
def test_a_bad_file_does_not_take_the_others_with_it(model, tmp_path, verb):
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"no tensors")
    plan = tenfold.plan(verb, [model, bad], items=2, state=tmp_path / "state")
    assert "found" in [plan.run(item) for item in range(len(plan.items))]
    good, wrong = plan.join()
    assert good == getattr(tenfold, verb)(model)
    if verb == "verify":
        assert not wrong.sound
    else:
        assert isinstance(wrong, tenfold.Error) and wrong.path == str(bad)
    alone = tenfold.plan("digest", bad, items=1, state=tmp_path / "alone")
    assert alone.run(0) == "found"
    with pytest.raises(tenfold.Error):
        alone.join()


def test_trees_are_converted_and_say_what_was_not(model, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    model.rename(tree / "a.safetensors")
    (tree / "b.safetensors").write_bytes(b"no tensors")
    plan = tenfold.plan("convert", tree, f"{tmp_path / 'out'}/", items=2, options={"to": "gguf"})
    for item in range(len(plan.items)):
        plan.run(item)
    written = plan.join()
    (wrong,) = written.failed
    assert isinstance(wrong, tenfold.Error) and "b.safetensors" in wrong.path
    assert tenfold.open(tmp_path / "out" / "a.gguf").keys()


def test_the_command_reads_plans(model, tmp_path):
    plan = tenfold.plan("digest", model, items=2, state=tmp_path / "state")
    plan.save(tmp_path / "plan.json")
    assert tenfold.open_plan(tmp_path / "plan.json") == plan
    command = [sys.executable, "-m", "tenfold", "run", str(tmp_path / "plan.json"), "--all"]
    assert subprocess.run(command).returncode == 0
    assert plan.missing == []
    plan.abandon()
    assert plan.missing == [0, 1]


def test_what_is_not_done_or_changed_is_an_error(model, tmp_path):
    plan = tenfold.plan("digest", model, items=2, state=tmp_path / "state")
    plan.run(0)
    with pytest.raises(tenfold.Error, match="not done: 1"):
        plan.join()
    with model.open("ab") as file:
        file.write(b"x")
    with pytest.raises(tenfold.Error, match="plan again"):
        plan.run(1)
    with pytest.raises(tenfold.ArgumentError):
        tenfold.plan("digest", model)
