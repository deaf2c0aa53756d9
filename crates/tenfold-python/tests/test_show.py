"""What notebooks show."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from conftest import golden

import tenfold


class Checker(HTMLParser):
    """Every element is closed, nothing runs, nothing comes from outside."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        assert not self.open, self.open
        assert len(text.encode()) < 64 << 10

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "img", "link", "iframe", "object", "b onclick"), tag
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
        if tag not in ("br",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def said(shown: object) -> str:
    """The words of what is shown."""
    return " ".join(Checker(shown._repr_html_()).text)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("path"), [pytest.param(path, id=title) for title, path, _ in golden("valid")])
@pytest.mark.filterwarnings("ignore")
def test_every_golden_file_is_shown(path: Path) -> None:
    try:
        archive = tenfold.open(path)
    except tenfold.Error:
        pytest.skip("needs an option")
    said(archive)
    for tensor in list(archive.values())[:20]:
        assert tensor.name[:10].strip()[:3] in said(tensor)


def test_numbers_at_the_edges(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    odd = np.array([[np.nan, 1.5], [-np.inf, 0]], "float32")
    many = np.arange(10_000, dtype="int64").reshape(100, 100)
    tenfold.save(
        path,
        {"odd": odd, "many": many, "one": np.float32(0.5), "wave": np.array([1 - 2j]), "deep": many.reshape(4, 25, 100).copy()},
    )
    archive = tenfold.open(path)
    assert re.search(r"nan\s+1\.5\s+-inf\s+0", said(archive["odd"]))
    words = said(archive["many"]).split()
    assert {"0", "3", "96", "99", "9900", "9999"} <= set(words) and "4" not in words[5:] and "5050" not in words
    assert "0.5" in said(archive["one"]).split() and "1-2j" in said(archive["wave"])
    assert "[0, :, :]" in said(archive["deep"])


def test_markup_in_names_and_values_is_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>'\"&"
    path, other = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    tenfold.save(path, {f"{evil}{n}": np.full(3, n, "float32") for n in range(200)}, metadata={evil: evil * 100})
    tenfold.save(other, {f"{evil}{n}": np.full(4, n, "float32") for n in range(200)}, metadata={evil: evil})
    archive = tenfold.open(path)
    for shown in (archive, archive[f"{evil}0"], tenfold.diff(path, other), tenfold.stats(path, bins=9), tenfold.inspect(path)):
        assert "alert(1)" in said(shown)
    for shown in (tenfold.verify(path), tenfold.verify(b"nothing"), archive[f"{evil}0"].stats(bins=5), tenfold.scan(path)):
        said(shown)
    archive.close()
    assert "closed" in said(archive)


def test_comparisons_say_what_is_different(tmp_path: Path) -> None:
    a, b = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    tenfold.save(a, {"kept": np.arange(3), "gone": np.zeros(2), "x": np.array([1.0, 2.0])})
    tenfold.save(b, {"kept": np.arange(3), "new": np.ones(5), "x": np.array([1.0, 2.5])})
    words = said(tenfold.diff(a, b))
    assert "1 of 2 differ" in words and "by at most 0.5" in words and "+ added" in words and "− removed" in words
    assert "✓ equal" in said(tenfold.diff(a, a))
    assert "✓ sound" in said(tenfold.verify(a)) and "✗ not sound" in said(tenfold.verify(b"nothing that is known"))
