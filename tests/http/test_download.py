"""Fetching from a local server that cuts, lies, changes its mind and says no."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ombud.errors import DataError, RegistryError
from ombud.http.download import RemoteFile, download_names, fetch, get_download

CONTENT = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server:
    """What the server does, and what it was asked."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.tag = '"one"'
        self.ranges = True
        self.cut: list[int] = []
        self.status: list[tuple[int, dict[str, str]]] = []
        self.redirect = ""
        self.declare_length = True
        self.wrong_range = False
        self.slow = 0.0
        self.asked: list[dict[str, str]] = []
        self.url = ""


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            server.asked.append({k.lower(): v for k, v in self.headers.items()})
            if server.status:
                status, headers = server.status.pop(0)
                self.send_response(status)
                for name, value in (headers | {"Content-Length": "0"}).items():
                    self.send_header(name, value)
                self.end_headers()
                return
            if server.redirect and self.path != "/moved":
                self.send_response(302)
                self.send_header("Location", server.redirect)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start, status = 0, 200
            asked = self.headers.get("Range", "")
            if asked and server.ranges and self.headers.get("If-Range") == server.tag:
                start, status = int(asked.removeprefix("bytes=").removesuffix("-")), 206
            body = server.content[start:]
            self.send_response(status)
            if server.tag:
                self.send_header("ETag", server.tag)
            if status == 206:
                first = start + 5 if server.wrong_range else start
                self.send_header("Content-Range", f"bytes {first}-/{len(server.content)}")
            if server.declare_length:
                self.send_header("Content-Length", str(len(body)))
            else:
                self.send_header("Connection", "close")
            self.end_headers()
            if server.cut:
                body = body[: server.cut.pop(0)]
                self.close_connection = True
            for low in range(0, len(body), 65536):
                self.wfile.write(body[low : low + 65536])
                time.sleep(server.slow)

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler(state))
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever, args=(0.02,))
    thread.start()
    state.url = f"http://127.0.0.1:{running.server_port}/file.zip"
    yield state
    running.shutdown()
    thread.join()
    running.server_close()


def remote(server: Server, **known: Any) -> RemoteFile:
    return RemoteFile(server.url, "file.zip", **known)


def get(server: Server, folder: Path, **known: Any) -> Any:
    waits: list[float] = []
    found = fetch(remote(server, **known), folder, attempts=3, sleep=waits.append)
    return found, waits


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_file_comes_whole_and_is_recorded(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    found = fetch(remote(server, sha256=SHA256), tmp_path, progress=lambda *step: seen.append(step))
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert found.sha256 == SHA256 and found.check == "sha256 as listed by ombud"
    assert seen[-1] == (len(CONTENT), len(CONTENT), "file.zip")
    assert [step[0] for step in seen] == sorted(step[0] for step in seen)
    record = json.loads((tmp_path / "file.zip.download.json").read_text())
    assert record["sha256"] == SHA256 and record["url"] == server.url
    assert names(tmp_path) == ["file.zip", "file.zip.download.json"]


def test_without_a_known_checksum_it_says_so(server: Server, tmp_path: Path) -> None:
    found, _ = get(server, tmp_path)
    assert "knows no checksum" in found.check and found.sha256 == SHA256
    assert found.md5 == hashlib.md5(CONTENT).hexdigest()


def test_a_cut_connection_is_resumed(server: Server, tmp_path: Path) -> None:
    server.cut = [100_000, 250_000]
    found, waits = get(server, tmp_path, sha256=SHA256)
    assert found.size == len(CONTENT)
    assert [a.get("range") for a in server.asked] == [None, "bytes=100000-", "bytes=350000-"]
    assert len(waits) == 2


def test_without_ranges_it_starts_over(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    server.cut = [100_000]
    found, _ = get(server, tmp_path, sha256=SHA256)
    assert found.size == len(CONTENT) and len(server.asked) == 2


def test_without_a_mark_of_the_version_nothing_is_resumed(server: Server, tmp_path: Path) -> None:
    server.tag = ""
    server.cut = [100_000]
    found, _ = get(server, tmp_path, sha256=SHA256)
    assert found.size == len(CONTENT)
    assert [a.get("range") for a in server.asked] == [None, None]


def test_a_later_run_goes_on(server: Server, tmp_path: Path) -> None:
    server.cut = [60_000]
    server.status = []

    class Stop(Exception):
        pass

    def stop(_: float) -> None:
        raise Stop

    with pytest.raises(Stop):
        fetch(remote(server), tmp_path, sleep=stop)
    assert names(tmp_path) == ["file.zip.part", "file.zip.part.json"]
    get(server, tmp_path, sha256=SHA256)
    assert server.asked[-1]["range"] == "bytes=60000-"


def test_a_file_that_changed_in_between_is_fetched_anew(server: Server, tmp_path: Path) -> None:
    server.cut = [60_000]
    with pytest.raises(ZeroDivisionError):
        fetch(remote(server), tmp_path, sleep=lambda _: 1 / 0)
    server.content, server.tag = CONTENT[::-1], '"two"'
    found, _ = get(server, tmp_path)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT[::-1]
    assert found.size == len(CONTENT)


def test_another_part_than_asked_for_is_not_used(server: Server, tmp_path: Path) -> None:
    server.wrong_range = True
    server.cut = [60_000]
    get(server, tmp_path, sha256=SHA256)


def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{SHA256}; {'0' * 64} was expected"):
        get(server, tmp_path, sha256="0" * 64)
    assert names(tmp_path) == []
    with pytest.raises(DataError, match="the md5 of"):
        get(server, tmp_path, md5="0" * 32)


def test_a_file_that_is_there_is_checked_and_not_fetched(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.zip").write_bytes(CONTENT)
    found, _ = get(server, tmp_path, sha256=SHA256)
    assert found.size == len(CONTENT) and server.asked == []
    (tmp_path / "file.zip").write_bytes(b"other")
    with pytest.raises(DataError, match="was expected"):
        get(server, tmp_path, sha256=SHA256)
    assert (tmp_path / "file.zip").read_bytes() == b"other", "what the user has is not removed"


@pytest.mark.parametrize("status", [404, 403, 418])
def test_a_refusal_is_final(server: Server, tmp_path: Path, status: int) -> None:
    server.status = [(status, {})]
    with pytest.raises(DataError, match=f"status {status}"):
        get(server, tmp_path)
    assert len(server.asked) == 1 and "file.zip" not in names(tmp_path)


def test_a_busy_server_is_asked_again_when_it_says(server: Server, tmp_path: Path) -> None:
    server.status = [(503, {"Retry-After": "7"}), (429, {})]
    _, waits = get(server, tmp_path, sha256=SHA256)
    assert waits[0] == 7.0 and 0 < waits[1] < 60


def test_it_gives_up_in_the_end(server: Server, tmp_path: Path) -> None:
    server.status = [(500, {})] * 10
    with pytest.raises(DataError, match=r"3 attempts brought nothing \(status 500\)"):
        get(server, tmp_path)
    server.status = [(503, {"Retry-After": "100000"})]
    with pytest.raises(DataError, match="asks to wait 100,000 seconds"):
        get(server, tmp_path)


def test_size_is_bounded_declared_or_not(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="at most 1,000 are fetched"):
        get(server, tmp_path, largest=1000)
    server.declare_length = False
    with pytest.raises(DataError, match="more than 1,000 bytes"):
        get(server, tmp_path, largest=1000)
    assert "file.zip" not in names(tmp_path)


def test_redirects_are_followed_but_not_to_plain_http_elsewhere(
    server: Server, tmp_path: Path
) -> None:
    server.redirect = server.url.replace("/file.zip", "/moved")
    found, _ = get(server, tmp_path, sha256=SHA256)
    assert found.url.endswith("/moved")
    server.redirect = "http://example.org/file.zip"
    with pytest.raises(DataError, match="not https"):
        get(server, tmp_path / "other")


def test_addresses() -> None:
    for url in ("http://example.org/x", "ftp://example.org/x", "file:///etc/passwd", "x"):
        with pytest.raises(DataError, match="not https"):
            fetch(RemoteFile(url, "x"), "never")
    with pytest.raises(DataError, match="user name"):
        fetch(RemoteFile("https://a:b@example.org/x", "x"), "never")
    assert not Path("never").exists()


KILLED = """
import sys
from ombud.http.download import RemoteFile, fetch
fetch(RemoteFile(sys.argv[1], "file.zip"), sys.argv[2])
"""


def test_killed_in_the_middle_it_goes_on(server: Server, tmp_path: Path) -> None:
    server.slow = 0.02
    process = subprocess.Popen([sys.executable, "-c", KILLED, server.url, str(tmp_path)])
    part = tmp_path / "file.zip.part"
    deadline = time.monotonic() + 600
    while not (part.exists() and part.stat().st_size > 100_000):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "file.zip").exists()
    kept = part.stat().st_size
    assert kept > 0
    server.slow = 0
    get(server, tmp_path, sha256=SHA256)
    assert server.asked[-1]["range"] == f"bytes={kept}-"


def test_every_download_is_described() -> None:
    for name in download_names():
        one = get_download(name)
        assert one.licence and one.terms.startswith("https://") and one.files and one.use
        for file in one.files:
            assert file.url.startswith("https://") and "/" not in file.name
            assert not file.md5 or len(file.md5) == 32
    with pytest.raises(RegistryError, match="movielens-25m"):
        get_download("movielens-26m")
