"""Models whose weights are quantized into several tensors each."""

import hashlib
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import tenfold

FIXTURES = Path(__file__).parents[3] / "fixtures" / "quantized"


@pytest.mark.parametrize("case", ["gptq/b4_actorder_v1", "awq/g32", "fp8-block/partial_blocks", "mlx/b3_g64"])
def test_a_model_is_opened_as_its_numbers(case: str) -> None:
    expected = json.loads((FIXTURES / f"{case}.json").read_text())
    with tenfold.open(FIXTURES / case, dequantize=True) as archive:
        for wanted in expected["tensors"]:
            array = archive[wanted["name"]].numpy()
            assert list(array.shape) == wanted["shape"]
            assert hashlib.sha256(archive[wanted["name"]].tobytes()).hexdigest() == wanted["sha256"]
            if wanted["dtype"] == "f32":
                assert array.dtype == np.float32


def test_what_was_opened_as_numbers_is_that_in_another_process() -> None:
    archive = tenfold.open(FIXTURES / "gptq/b4_g32_v1", dequantize=True)
    again = pickle.loads(pickle.dumps(archive))
    name = "model.layers.0.self_attn.q_proj.weight"
    assert (again[name].numpy() == archive[name].numpy()).all()


def test_a_model_is_converted_to_numbers_by_their_names(tmp_path: Path) -> None:
    tenfold.convert(FIXTURES / "gptq/b4_g32_v1", tmp_path / "x.npz", dequantize=True, include="*.weight", allow="dropped")
    with tenfold.open(tmp_path / "x.npz") as archive:
        assert "model.layers.0.self_attn.q_proj.weight" in archive
