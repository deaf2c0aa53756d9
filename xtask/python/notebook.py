"""A page that shows what notebooks show of archives, tensors and results: light and dark, with the rules that JupyterLab has for
tables in outputs. `cargo xtask python notebook` makes it, and pictures of it where there is a Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse

import tenfold

# What JupyterLab's theme does to outputs.
STYLE = """
body{margin:0;font:13px/1.4 -apple-system,'Segoe UI',Helvetica,Arial,sans-serif}
.page{padding:16px 24px}
.light{background:#fff;color:rgba(0,0,0,.87)} .dark{background:#111;color:rgba(255,255,255,.87)}
.in{font:13px/1.3 Menlo,Consolas,'DejaVu Sans Mono',monospace;background:rgba(127,127,127,.12);padding:5px 8px;margin:14px 0 6px}
.jp-RenderedHTMLCommon{font-size:14px;line-height:1.6}
.jp-RenderedHTMLCommon table{border-collapse:collapse;border-spacing:0;border:none;font-size:12px;table-layout:fixed;
margin-left:auto;margin-bottom:1em;margin-right:auto}
.jp-RenderedHTMLCommon thead{border-bottom:1px solid rgba(127,127,127,.5);vertical-align:bottom}
.jp-RenderedHTMLCommon td,.jp-RenderedHTMLCommon th,.jp-RenderedHTMLCommon tr{vertical-align:middle;padding:.5em;
line-height:normal;white-space:normal;max-width:none;border:none}
:not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon td,:not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon th{text-align:right}
.jp-RenderedHTMLCommon tbody tr:nth-child(even){background:rgba(127,127,127,.08)}
.jp-RenderedHTMLCommon code{background:rgba(127,127,127,.2);padding:1px 5px}
"""


def outputs(folder: Path) -> list[tuple[str, object]]:
    """Code of a cell, and what it gives."""
    rng = np.random.default_rng(1)
    tensors: dict[str, object] = {"embed.weight": rng.standard_normal((3200, 256)).astype("float16")}
    for n in range(12):
        layer = f"model.layers.{n}"
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            tensors[f"{layer}.attention.{name}.weight"] = rng.standard_normal((256, 256)).astype("float16")
        tensors[f"{layer}.mlp.up.weight"] = rng.standard_normal((688, 256)).astype("float16")
        tensors[f"{layer}.norm.weight"] = np.ones(256, "float32")
    tensors["head.bias"] = np.linspace(-1, 1, 3200, dtype="float32")
    odd = rng.standard_normal((6, 5)).astype("float32")
    odd[1, 2], odd[3, 3], odd[4, 0], odd[0, 0] = np.nan, np.inf, -np.inf, 0
    tensors |= {"odd": odd, "scale": np.float32(0.125), "wave": np.exp(1j * np.arange(12)).reshape(3, 4).astype("complex64")}
    tensors |= {"mask": np.array([True, False, True]), "empty": np.zeros((0, 4), "float32")}
    model, other = folder / "model.safetensors", folder / "other.safetensors"
    tenfold.save(model, tensors, metadata={"by": "somebody", "note": "<b>not bold</b>", "step": "20000"})
    changed = dict(tensors)
    changed["head.bias"] = np.linspace(-1, 1.001, 3200, dtype="float32")
    changed["model.layers.0.norm.scale"] = changed.pop("model.layers.0.norm.weight")
    changed["extra"] = np.zeros(4)
    del changed["mask"]
    tenfold.save(other, changed, metadata={"by": "somebody else", "step": "20000"})
    sparse = folder / "sparse.zt"
    tenfold.save(sparse, {"edges": scipy.sparse.random(60, 80, 0.05, "csr", "float32", rng=rng)})
    quantized = folder / "model.gguf"
    tenfold.convert(model, quantized, include="model.layers.*", quantize={"*.weight": "Q8_0"}, allow="dropped")
    packed = folder / "packed.zt"
    tenfold.convert(model, packed, zstd=3)
    archive = tenfold.open(model)
    broken = bytearray(packed.read_bytes())
    broken[4000] ^= 1
    return [
        ('tenfold.open("model.safetensors")', archive),
        ('tenfold.open("model.gguf")', tenfold.open(quantized)),
        ('archive["embed.weight"]', archive["embed.weight"]),
        ('archive["head.bias"]', archive["head.bias"]),
        ('archive["odd"]', archive["odd"]),
        ('archive["scale"]', archive["scale"]),
        ('archive["wave"]', archive["wave"]),
        ('archive["empty"]', archive["empty"]),
        ('archive["mask"]', archive["mask"]),
        ('tenfold.open("model.gguf")[name]', next(iter(tenfold.open(quantized).values()))),
        ('tenfold.open("sparse.zt")["edges"]', tenfold.open(sparse)["edges"]),
        ('tenfold.open("packed.zt")["embed.weight"]', tenfold.open(packed)["embed.weight"]),
        ("tenfold.diff(model, other)", tenfold.diff(model, other)),
        ("tenfold.diff(model, model)", tenfold.diff(model, model)),
        ('tenfold.stats(model, include="*.3.*")', tenfold.stats(model, bins=40, include=["*.3.*", "odd"])),
        ('archive["embed.weight"].stats(bins=40)', archive["embed.weight"].stats(bins=40)),
        ("tenfold.verify(model)", tenfold.verify(model)),
        ("tenfold.verify(broken)", tenfold.verify(bytes(broken))),
        ("tenfold.scan(evil)", tenfold.scan(b"cposix\nsystem\n(X\x04\x00\x00\x00truetR.")),
    ]


def page(cells: list[tuple[str, object]], theme: str) -> str:
    from html import escape

    shown = "".join(
        f"<div class='in'>{escape(code)}</div><div class='jp-RenderedHTMLCommon'>{value._repr_html_()}</div>"  # type: ignore[attr-defined]
        for code, value in cells
    )
    return f"<!doctype html><meta charset='utf-8'><style>{STYLE}</style><body class='{theme}'><div class='page'>{shown}</div>"


def main() -> None:
    warnings.simplefilter("ignore")
    target = Path(sys.argv[1]).absolute()
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        cells = outputs(Path(folder))
        for theme in ("light", "dark"):
            path = target / f"notebook-{theme}.html"
            path.write_text(page(cells, theme))
            print(path)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium is here: there are no pictures")
        return
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
    for theme in ("light", "dark"):
        picture = target / f"notebook-{theme}.png"
        with tempfile.TemporaryDirectory() as profile:
            subprocess.run(
                [
                    chromium,
                    *flags.split(),
                    "--disable-sync",
                    "--hide-scrollbars",
                    f"--user-data-dir={profile}",
                    "--window-size=1000,4200",
                    f"--screenshot={picture}",
                    (target / f"notebook-{theme}.html").as_uri(),
                ],
                check=True,
                capture_output=True,
            )
        print(picture)


if __name__ == "__main__":
    main()
