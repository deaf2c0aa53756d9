"""Files behind URLs, on a small server of our own."""

from __future__ import annotations

import http.server
import pickle
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy
import pytest

import tenfold


class Handler(http.server.BaseHTTPRequestHandler):
    """Ranges and tags, and as much of S3 as small files need."""

    protocol_version = "HTTP/1.1"
    files: ClassVar[dict[str, bytes]] = {}

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Wed, 18 Nov 2026 12:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        whole = self.files.get(self.path.partition("?")[0])
        if whole is None:
            self.answer(404, b"<html>a page that nobody shall see</html>")
            return
        tag = f'"{hash(whole)}"'
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked is None:
            self.answer(200, whole, ETag=tag)
            return
        first, last = int(asked[1]), min(int(asked[2]), len(whole) - 1)
        self.answer(206, whole[first : last + 1], ETag=tag, Content_Range=f"bytes {first}-{last}/{len(whole)}")

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("If-None-Match") == "*" and self.path in self.files:
            self.answer(412)
            return
        self.files[self.path] = body
        self.answer(200, ETag='"1"')


@pytest.fixture
def server() -> Iterator[str]:
    Handler.files = {}
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


@pytest.fixture
def storage(server: str) -> dict[str, object]:
    return {"endpoint": server, "access_key_id": "a", "secret_access_key": "hidden", "region": "us-east-1"}


def test_a_url_opens_like_a_path(server: str) -> None:
    path = Path("fixtures/safetensors/valid/medium_64k.safetensors")
    Handler.files["/m/model.safetensors"] = path.read_bytes()
    with tenfold.open(f"{server}/m/model.safetensors") as far, tenfold.open(path) as near:
        assert list(far) == list(near)
        for name in near:
            assert bytes(far[name].numpy().tobytes()) == bytes(near[name].numpy().tobytes())
        again = pickle.loads(pickle.dumps(far))
        assert list(again) == list(near)


def test_what_may_be_secret_is_not_pickled(server: str, storage: dict[str, object]) -> None:
    tenfold.save("s3://bucket/m.safetensors", {"w": numpy.arange(3)}, storage_options=storage)
    archive = tenfold.open("s3://bucket/m.safetensors", storage_options=storage)
    for one in (archive, archive["w"], archive.select("w")):
        with pytest.raises(TypeError, match="opened with access_key_id, secret_access_key in storage_options") as refused:
            pickle.dumps(one)
        assert "hidden" not in str(refused.value)
    # What anybody may know goes along.
    plain = {"endpoint": server, "anonymous": True, "region": "us-east-1"}
    with tenfold.open("s3://bucket/m.safetensors", storage_options=plain) as archive:
        again = pickle.loads(pickle.dumps(archive))
        assert again["w"].numpy().tolist() == [0, 1, 2]


def test_saving_and_converting_to_a_bucket(storage: dict[str, object], tmp_path: Path) -> None:
    tensors = {"w": numpy.arange(12, dtype="float32").reshape(3, 4)}
    report = tenfold.save("s3://bucket/m.safetensors", tensors, storage_options=storage)
    assert report.format == "safetensors"
    with tenfold.open("s3://bucket/m.safetensors", storage_options=storage) as archive:
        assert (archive["w"].numpy() == tensors["w"]).all()
    tenfold.convert("s3://bucket/m.safetensors", "s3://bucket/m.gguf", storage_options=storage)
    assert Handler.files["/bucket/m.gguf"][:4] == b"GGUF"
    with pytest.raises(FileExistsError, match="already exists"):
        tenfold.convert("s3://bucket/m.safetensors", "s3://bucket/m.gguf", storage_options=storage)
    tenfold.convert("s3://bucket/m.gguf", tmp_path / "m.npz", storage_options=storage)
    assert (numpy.load(tmp_path / "m.npz")["w"] == tensors["w"]).all()


def test_errors_say_what_to_do_and_nothing_secret(server: str, storage: dict[str, object]) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        tenfold.open(f"{server}/none.npy?signature=hidden")
    assert "404" in str(caught.value)
    assert "hidden" not in str(caught.value) and "<html>" not in str(caught.value)
    with pytest.raises(tenfold.Error, match="allow_http"):
        tenfold.open("http://192.0.2.1/x.npy")
    with pytest.raises(tenfold.Error, match="not read"):
        tenfold.open("ftp://host/x.npy")
    with pytest.raises(FileNotFoundError, match="404") as failed:
        tenfold.open("s3://bucket/none.npy", storage_options=storage)
    assert "hidden" not in str(failed.value)
