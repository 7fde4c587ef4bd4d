"""A local server that speaks the documented protocols of the moderation services, and fails.

Run alone: ``python stub_service.py PORT LATENCY`` answers until it is ended.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from typing import Any, Self

STATUS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 429: "Slow Down"}
CATEGORIES = ("harassment", "hate", "sexual", "violence")


def score_of(text: str) -> float:
    """A score any test can work out: the share of the letter z, ten times over, up to 1."""
    return min(1.0, 10 * text.count("z") / max(1, len(text)))


def perspective(question: Any) -> tuple[list[str], Any]:
    text = question["comment"]["text"]
    value = {"summaryScore": {"value": score_of(text), "type": "PROBABILITY"}}
    return [text], {
        "attributeScores": dict.fromkeys(question["requestedAttributes"], value),
        "languages": ["en"],
    }


def openai(question: Any) -> tuple[list[str], Any]:
    given = question["input"]
    texts = [given] if isinstance(given, str) else given
    results = []
    for text in texts:
        scores = dict.fromkeys(CATEGORIES, 0.001) | {"hate": score_of(text)}
        flags = {category: score >= 0.4 for category, score in scores.items()}
        results.append(
            {"flagged": any(flags.values()), "categories": flags, "category_scores": scores}
        )
    return texts, {"id": "modr-1", "model": f"{question['model']}-2024", "results": results}


def google(question: Any) -> tuple[list[str], Any]:
    text = question["document"]["content"]
    pairs = [("Toxic", score_of(text)), ("Religion & Belief", 0.9), ("Health", 0.8)]
    return [text], {"moderationCategories": [{"name": n, "confidence": c} for n, c in pairs]}


def anthropic(question: Any) -> tuple[list[str], Any]:
    text = question["messages"][0]["content"].split("<user_text>")[1].split("</user_text>")[0]
    word = "BLOCK" if score_of(text) >= 0.5 else "ALLOW"
    return [text], {
        "model": question["model"],
        "content": [{"type": "text", "text": word}],
        "stop_reason": "end_turn",
    }


def chat(question: Any) -> tuple[list[str], Any]:
    text = next(one["content"] for one in question["messages"] if one["role"] == "user")
    words = "unsafe\nS1,S10" if score_of(text) >= 0.5 else "safe"
    message = {"role": "assistant", "content": words}
    return [text], {
        "model": question["model"],
        "choices": [{"message": message, "finish_reason": "stop"}],
    }


def plain(question: Any) -> tuple[list[str], Any]:
    answer = {"score": score_of(question["text"]), "model": {"v": "7"}}
    return [question["text"]], answer | ({"id": question["id"]} if "id" in question else {})


ROUTES = {
    "/v1alpha1/comments:analyze": perspective,
    "/v1/moderations": openai,
    "/v1/documents:moderateText": google,
    "/v2/documents:moderateText": google,
    "/v1/messages": anthropic,
    "/v1/chat/completions": chat,
    "/plain": plain,
}


class Connection(asyncio.Protocol):
    def __init__(self, stub: StubService) -> None:
        self.stub = stub
        self.buffer = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.stub.connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self.stub.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines)}
            size = int(headers.get("content-length", 0))
            if len(self.buffer) < end + 4 + size:
                return
            body = self.buffer[end + 4 : end + 4 + size]
            self.buffer = self.buffer[end + 4 + size :]
            loop = asyncio.get_running_loop()
            path = first.split(" ")[1]
            if self.stub.latency:
                loop.call_later(self.stub.latency, self.answer, path, headers, body)
            else:
                self.answer(path, headers, body)

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> None:
        stub = self.stub
        question = json.loads(body)
        texts, reply = ROUTES[path](question)
        stub.requests.append((path, headers, question)) if stub.keep else None
        stub.asked.update(texts)
        fault = stub.next_fault(texts)
        keys = {headers.get(name, "") for name in ("authorization", "x-goog-api-key", "x-api-key")}
        if stub.key and not keys & {stub.key, f"Bearer {stub.key}"}:
            fault = "401"
        if fault:
            self.fail(fault, texts, reply, headers)
        else:
            self.send(200, json.dumps(reply).encode(), texts)

    def fail(self, fault: str, texts: list[str], reply: Any, headers: dict[str, str]) -> None:
        name, _, detail = fault.partition(":")
        if name.isdecimal():
            wait = f"Retry-After: {detail}\r\n" if detail else ""
            message = json.dumps({"error": {"message": f"you sent {headers}"}}).encode()
            self.send(int(name), message, [], wait)
        elif name == "malformed":
            self.send(200, b'{"attributeScores": {', [])
        elif name == "shape":
            self.send(200, b'[{"surprise": true}]', texts)
        elif name == "say":
            self.send(200, json.dumps(with_words(reply, detail)).encode(), texts)
        elif name == "category":
            for result in reply["results"]:
                result["category_scores"]["brand/new"] = 0.9
                result["categories"]["brand/new"] = True
            self.send(200, json.dumps(reply).encode(), texts)
        elif name == "half":
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        elif name == "close":
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            self.transport.close()
        elif name == "reset":
            linger = struct.pack("ii", 1, 0)
            self.transport.get_extra_info("socket").setsockopt(1, 13, linger)
            self.transport.abort()
        elif name == "twice":
            data = json.dumps(reply).encode()
            self.send(200, data, texts)
            again = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data)
            asyncio.get_running_loop().call_later(float(detail), self.transport.write, again)
        elif name == "late":
            data = json.dumps(reply).encode()
            asyncio.get_running_loop().call_later(float(detail), self.send, 200, data, [])
        elif name == "body":
            self.send(200, bytes.fromhex(detail), texts)
        elif name == "chunked":
            data = json.dumps(reply).encode()
            head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            chunks = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (data[:9], data[9:]))
            self.transport.write(head + chunks + b"0\r\n\r\n")
            self.stub.answered.update(texts)
        elif name != "stall":
            raise ValueError(fault)

    def send(self, status: int, body: bytes, texts: Iterable[str], more: str = "") -> None:
        reason = STATUS.get(status, "Error")
        head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n{more}"
        self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        if status == 200:
            self.stub.answered.update(texts)


def with_words(reply: Any, words: str) -> Any:
    """A chat reply with other words in it."""
    if "choices" in reply:
        reply["choices"][0]["message"]["content"] = words
    else:
        reply["content"][0]["text"] = words
        if words == "refusal":
            reply |= {"content": [], "stop_reason": "refusal"}
    return reply


class StubService:
    """The server, in a thread of its own.

    `faults[text]` is a list of faults, one for each time the text is asked about; afterwards it
    is answered. `asked` counts requests, `answered` whole good replies, by text.
    """

    def __init__(self, latency: float = 0.0, key: str = "", keep: bool = True) -> None:
        self.latency = latency
        self.key = key
        self.keep = keep
        self.faults: defaultdict[str, deque[str]] = defaultdict(deque)
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.connections: set[Connection] = set()
        self.port = 0

    def next_fault(self, texts: list[str]) -> str:
        for text in texts:
            if self.faults.get(text):
                return self.faults[text].popleft()
        return ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, port: int = 0) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self), "127.0.0.1", port)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(self.serve())
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        async def stop() -> None:
            self._server.close()
            for connection in list(self.connections):
                connection.transport.abort()
            while self.connections:
                await asyncio.sleep(0.001)

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _forever(port: int, latency: float) -> None:
    stub = StubService(latency, keep=False)
    server = await stub.serve(port)
    sys.stdout.write(f"{stub.port}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_forever(int(sys.argv[1]), float(sys.argv[2])))
