"""Object stores: servers on this machine that speak as Google's, Azure's and Hugging Face's do.

Amazon's is read in `tests/audits/test_streamed.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from urllib.request import Request, urlopen

import polars as pl
import pytest

from ombud.data.lake import LakeTable
from ombud.errors import DataError

ROWS = pl.DataFrame({"user": [1, 2, 3], "item": [4, 5, 6], "day": ["a", "b", "a"]})


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    """A table in Hive partitions."""
    found = {}
    for day in ("a", "b"):
        ROWS.filter(pl.col("day") == day).drop("day").write_parquet(tmp_path / "part")
        found[f"rows/day={day}/1.parquet"] = (tmp_path / "part").read_bytes()
    return found


def assert_read(path: str) -> None:
    table = LakeTable(path)
    assert list(table.schema()) == ["user", "item", "day"]
    parts = [row for batch in table.batches(["user", "item", "day"]) for row in batch.to_pylist()]
    assert sorted(parts, key=lambda row: row["user"]) == ROWS.to_dicts()
    assert table.count() == 3


def assert_nothing_at(path: str) -> None:
    with pytest.raises(DataError, match=f"there is nothing at {path}, or it may not be listed"):
        LakeTable(path).schema()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_google(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch):
    """Arrow asks; the emulator answers."""
    emulator = pytest.importorskip("gcp_storage_emulator.server", reason="it is not installed")
    server = emulator.create_server("127.0.0.1", 0, in_memory=True, default_bucket="lake")
    server.start()
    host = f"http://127.0.0.1:{server._api._httpd.socket.getsockname()[1]}"
    monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", host)
    try:
        for name, body in files.items():
            address = f"{host}/upload/storage/v1/b/lake/o?uploadType=media&name={quote(name)}"
            with urlopen(Request(address, body, {"Content-Type": "application/octet-stream"})):
                pass
        assert_read("gs://anonymous@lake/rows")
        assert_nothing_at("gs://anonymous@lake/none")
    finally:
        server.stop()


AZURITE = shutil.which("azurite-blob")


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port = some.getsockname()[1]
    assert AZURITE is not None
    options = ["--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    server = subprocess.Popen([AZURITE, *options, "--blobPort", str(port)])
    try:
        for _ in range(6_000):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        # The account and key that the emulator's manual gives to everyone.
        key = (
            "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw"
        )
        told = (
            f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={key}==;"
            f"BlobEndpoint=http://127.0.0.1:{port}/devstoreaccount1;"
        )
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", told)
        yield told
    finally:
        server.terminate()
        server.wait()


@pytest.mark.skipif(AZURITE is None, reason="npm's azurite is not installed")
@pytest.mark.filterwarnings("ignore")
def test_azure(files: dict[str, bytes], azure: str, monkeypatch: pytest.MonkeyPatch):
    """adlfs asks; Azurite answers."""
    adlfs = pytest.importorskip("adlfs", reason="adlfs is not installed")
    from azure.storage.blob import BlobServiceClient

    client = BlobServiceClient.from_connection_string(azure)
    container = client.create_container("lake")
    for name, body in files.items():
        container.upload_blob(name, body)
    assert_read("az://lake/rows")
    assert_nothing_at("az://lake/none")
    wrong = azure.replace("Eby8", "AAAA")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", wrong)
    adlfs.AzureBlobFileSystem.clear_instance_cache()
    with pytest.raises(DataError, match="az://lake/rows cannot be listed or read"):
        LakeTable("az://lake/rows").schema()
    adlfs.AzureBlobFileSystem.clear_instance_cache()


class Hub(BaseHTTPRequestHandler):
    """As much of Hugging Face's hub as reading a dataset asks for."""

    def __init__(self, files: dict[str, bytes], *args: Any) -> None:
        self.files = files
        super().__init__(*args)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/datasets/me/lake/resolve/main/"):
            return self._file(path.removeprefix("/datasets/me/lake/resolve/main/"))
        if path.startswith("/api/datasets/me/lake/tree/main"):
            return self._tree(path.removeprefix("/api/datasets/me/lake/tree/main").strip("/"))
        if path in {"/api/datasets/me/lake", "/api/datasets/me/lake/revision/main"}:
            return self._say({"id": "me/lake", "sha": "0" * 40, "private": False, "siblings": []})
        return self._say({"error": "no"}, 404, {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        asked = json.loads(body)["paths"] if body.startswith("{") else parse_qs(body)["paths"]
        self._say([one for path in asked for one in self._about(path.strip("/"))])

    def _about(self, path: str) -> list[dict[str, Any]]:
        if path in self.files:
            size = len(self.files[path])
            return [{"type": "file", "path": path, "size": size, "oid": "1" * 40}]
        if any(name.startswith(f"{path}/") for name in self.files):
            return [{"type": "directory", "path": path, "size": 0, "oid": "2" * 40}]
        return []

    def _tree(self, folder: str) -> None:
        start = f"{folder}/" if folder else ""
        below = [name.removeprefix(start) for name in self.files if name.startswith(start)]
        if not below:
            return self._say({"error": "no"}, 404, {"X-Error-Code": "EntryNotFound"})
        deep = "recursive=True" in self.path or "recursive=true" in self.path
        parts = {
            tuple(name.split("/")[: k + 1]) for name in below for k in range(name.count("/") + 1)
        }
        names = sorted(start + "/".join(part) for part in parts if deep or len(part) == 1)
        self._say([one for name in names for one in self._about(name)])

    def _file(self, name: str) -> None:
        if name not in self.files:
            return self._say({"error": "no"}, 404, {"X-Error-Code": "EntryNotFound"})
        body, status = self.files[name], 200
        headers = {"ETag": '"1"', "X-Repo-Commit": "0" * 40}
        if asked := self.headers.get("Range"):
            low, high = asked.removeprefix("bytes=").split("-")
            status, headers["Content-Range"] = 206, f"bytes {low}-{high}/{len(body)}"
            body = body[int(low) : int(high) + 1]
        self._send(body, status, headers)

    def _say(self, what: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._send(json.dumps(what).encode(), status, headers or {})

    def _send(self, body: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


READ = """
import json, sys
from ombud.data.lake import LakeTable
from ombud.errors import DataError
for path in sys.argv[1:]:
    table = LakeTable(path)
    try:
        batches = table.batches(["user", "item", "day"])
        found = [row for batch in batches for row in batch.to_pylist()]
        print(json.dumps([list(table.schema()), table.count(), found]))
    except DataError as error:
        print(json.dumps(error.faults))
"""


def test_hugging_face(files: dict[str, bytes], tmp_path: Path):
    """Its own package asks; a server that knows one dataset answers."""
    for name in ("fsspec", "huggingface_hub"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Hub, files))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Its address is read when the package is imported, so another process imports it.
    host = f"http://127.0.0.1:{server.server_port}"
    env = {**os.environ, "HF_ENDPOINT": host, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1"}
    paths = ["hf://datasets/me/lake/rows", "hf://datasets/me/lake/none", "hf://datasets/no/no/rows"]
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ, *paths], env=env, capture_output=True, text=True
        )
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    (columns, count, rows), *absent = map(json.loads, done.stdout.splitlines())
    assert (columns, count) == (["user", "item", "day"], 3)
    assert sorted(rows, key=lambda row: row["user"]) == ROWS.to_dicts()
    assert absent == [
        [f"there is nothing at {path}, or it may not be listed"] for path in paths[1:]
    ]


def test_what_is_lacking_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("fsspec", reason="the extra lake is not installed")
    from fsspec.registry import known_implementations

    absent = {"class": "not_there.Store", "err": "Install not_there to read it"}
    monkeypatch.setitem(known_implementations, "lacking", absent)
    with pytest.raises(DataError, match=r"needs a package that is not installed: Install not_th"):
        LakeTable("lacking://bucket/rows").schema()
    with pytest.raises(DataError, match="unheard://bucket cannot be listed .*Protocol not known"):
        LakeTable("unheard://bucket").schema()


@pytest.mark.parametrize("path", ["s3://me:secret@bucket/rows", "abfs://me:secret@host/c/rows"])
def test_keys_in_addresses_are_refused_and_not_repeated(path: str):
    with pytest.raises(DataError, match="the address holds a key") as caught:
        LakeTable(path, name="interactions").schema()
    assert "secret" not in str(caught.value)
