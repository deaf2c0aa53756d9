"""What people would read headers and tensors over a network with. Prints how long it took."""

import json
import struct
import sys
import time


def with_fsspec(url):
    import fsspec

    with fsspec.open(url, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))


def with_hub(endpoint, name):
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint, token=False).parse_safetensors_file_metadata("org/model", name)


def one_tensor(url, name):
    import fsspec
    import safetensors.numpy

    with fsspec.open(url, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))[name]
        start, end = entry["data_offsets"]
        file.seek(8 + length + start)
        header = json.dumps({name: dict(entry, data_offsets=[0, end - start])}).encode()
        return safetensors.numpy.load(struct.pack("<Q", len(header)) + header + file.read(end - start))


def bucket(endpoint):
    import s3fs

    client = {"endpoint_url": endpoint, "region_name": "us-east-1"}
    return s3fs.S3FileSystem(key="tenfold", secret="tenfold-secret", client_kwargs=client)


def with_s3fs(endpoint, key):
    with bucket(endpoint).open(key, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))


def put(endpoint, path, key):
    bucket(endpoint).put(path, key)


WAYS = {"fsspec": with_fsspec, "hub": with_hub, "tensor": one_tensor, "s3": with_s3fs, "put": put}

# What is imported first is not what is measured.
import fsspec  # noqa: E402
import huggingface_hub  # noqa: E402, F401
import s3fs  # noqa: E402, F401

begun = time.perf_counter()
WAYS[sys.argv[1]](*sys.argv[2:])
print("seconds", time.perf_counter() - begun)
