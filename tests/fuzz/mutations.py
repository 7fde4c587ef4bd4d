"""Mutated bytes for the code in which ombud takes bytes apart: run by ``make fuzz``.

    python tests/fuzz/mutations.py --minutes 10 [--seed 31] [TARGET ...]

Each target gets so many CPU minutes. Inputs start from ``corpus/TARGET``; one that reaches new
lines of ombud is mutated further (and added to the corpus with ``--grow``). Whatever the bytes, a
target returns or raises an error of ombud, within `LIMIT` CPU seconds; anything else is a finding,
written to ``findings/TARGET`` beside the corpus and replayed by the test suite from then on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl

import ombud
from ombud.audits.condition import ANSWERS, Condition
from ombud.data.tables import TABLES, TableOptions, read_table_file
from ombud.errors import OmbudError
from ombud.http.client import Client, RequestError, _decoded
from ombud.http.keys import redact
from ombud.http.pace import retry_after
from ombud.link.isbn import extract_isbns, isbn_key, isbn_text
from ombud.link.marc import decode_marc8, read_marc
from ombud.link.problems import Problems
from ombud.stats.estimate import Estimate
from ombud.systems.moderators import HttpModerator, OpenAIModeration, Perspective
from ombud.systems.recommenders.adapters.http import GarbledReplyError, read_reply
from ombud.text.documents import Damage, read_documents

HERE = Path(__file__).parent
LIMIT = 10.0
MEMORY = 6 << 30
LONGEST = 1 << 14
SCRATCH = Path(tempfile.mkdtemp(prefix="ombud-fuzz-"))
ENDINGS = (".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet", ".arrow", ".csv.gz", ".csv.zip")
ENDINGS += (".csv.xz", ".csv.bz2", ".csv.zst", ".trec", ".inter")
SERVICES: tuple[Any, ...] = (
    HttpModerator(base_url="https://a.org", score_path="s", threshold=0.5, categories_path="c"),
    OpenAIModeration(model="omni-moderation-2024-09-26"),
    Perspective(),
)
ESTIMATES = (
    Estimate(metric="gap", value=0.3, interval=(0.2, 0.4), method="wilson", n=50, system="a"),
    Estimate.undefined(metric="gap", reason="none", n=0),
)


def fuzz_marc(data: bytes) -> None:
    path = SCRATCH / "a.mrc"
    path.write_bytes(data)
    for record in read_marc(path, Problems()):
        record.control("008")
        for tag in record.tags():
            record.fields(tag)


def fuzz_marc8(data: bytes) -> None:
    text, lost = decode_marc8(data)
    assert 0 <= lost <= len(data)
    text.encode()


def fuzz_isbn(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    found = extract_isbns(pl.Series([text, None, text[::-1]], dtype=pl.String))
    for key in found["isbn"].to_list():
        isbn_text(key)
    for key in found.filter(pl.col("valid"))["isbn"].to_list():
        assert isbn_key(isbn_text(key)) == key


def fuzz_condition(data: bytes) -> None:
    condition = Condition(data.decode("utf-8", "replace"))
    if condition.is_about_verdict:
        for answer in ANSWERS:
            condition.judge_answer(answer)
    else:
        for estimate in ESTIMATES:
            condition.matches(estimate)


def fuzz_reply(data: bytes) -> None:
    for service in SERVICES:
        answer = service.parse(200, data)
        answer.reason.encode(errors="surrogatepass")
    with suppress(GarbledReplyError):
        read_reply(data, ["a", 1])
    for encoding in ("gzip", "deflate", "br"):
        with suppress(RequestError):
            _decoded(data, encoding, 1 << 16)
    retry_after(data.decode("latin-1"))
    assert b"sk-0123456789abcdef" not in redact(data, "sk-0123456789abcdef").lower()


def fuzz_http(data: bytes) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(data)
            await writer.drain()
            writer.close()

    async def ask() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = Client(f"http://127.0.0.1:{port}/", {}, 5.0, largest=1 << 16)
        try:
            reply = await client.post(b"")
            assert len(reply.body) <= 1 << 16
        except RequestError:
            pass
        finally:
            await client.close()
            server.close()

    asyncio.run(ask())


def fuzz_reader(data: bytes) -> None:
    kind = data[:1] or b"\0"
    ending = ENDINGS[kind[0] % len(ENDINGS)]
    names = [*TABLES]
    name = names[kind[0] // len(ENDINGS) % len(names)]
    path = SCRATCH / f"t{ending}"
    path.write_bytes(data[1:])
    read_table_file(name, path, TableOptions())


def fuzz_documents(data: bytes) -> None:
    endings = (".jsonl", ".csv", ".tsv", ".txt", ".parquet", ".jsonl.gz", ".csv.gz", ".txt.gz")
    path = SCRATCH / f"d{endings[(data[:1] or bytes(1))[0] % len(endings)]}"
    path.write_bytes(data[1:])
    for batch in read_documents(path, damage=Damage()):
        assert batch.frame["text"].null_count() == 0


TARGETS: dict[str, Callable[[bytes], None]] = {
    name.removeprefix("fuzz_"): value
    for name, value in list(globals().items())
    if name.startswith("fuzz_")
}
WORDS = [
    *(b"\x1d", b"\x1e", b"\x1f", b"\x1b$1", b"\x1b(B", b"\x1bs", b"\x00", b"\xff", b"\r\n", b"\n\n"),
    *(b"97804", b"ISBN", b"X", b"-", b"(set)", b"::", b"e999", b"1e308", b"9" * 30, b"-0", b"nan"),
    *(b"and ", b"or ", b"not ", b"in ", b"==", b"(" * 60, b"[" * 200, b"{" * 200, b"value", b"low"),
    *(b"null", b"true", b'"user"', b'"item"', b"user,item", b"\xef\xbb\xbf", b"\xff\xfe", b'"', b"'"),
    *(b"\\ud800", b"\\u0000", b"<record>", b"</record>", b"<!DOCTYPE", b"&amp;", b"PAR1", b"PK\x03\x04"),
    *(b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"ARROW1\x00\x00", b"\t", b";"),
    *(b"score", b"results", b"sk-0123456789abcdef", b"=73=6B", b"c2stMDEyMzQ", b"%25", b"1970-01-01"),
]  # fmt: skip


def mutated(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Change some bytes of an input: flips, words, pieces cut, doubled or taken from others."""
    made = bytearray(data)
    for _ in range(1 << rng.randrange(5)):
        at = rng.randrange(len(made) + 1)
        to = min(len(made), at + 1 + int(rng.expovariate(1 / 8)))
        kind = rng.randrange(8)
        if kind == 0 and made:
            made[at % len(made)] ^= 1 << rng.randrange(8)
        elif kind == 1 and made:
            made[at % len(made)] = rng.randrange(256)
        elif kind == 2:
            made[at:at] = rng.choice(WORDS)
        elif kind == 3:
            made[at:to] = rng.choice(WORDS)
        elif kind == 4:
            del made[at:to]
        elif kind == 5:
            made[at:at] = made[at:to] * rng.choice((1, 2, 50))
        elif kind == 6:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            made[at:to] = other[start : start + to - at]
        else:
            made[at:at] = str(rng.choice((0, 1, 2**31, 2**63, 10 ** rng.randrange(40)))).encode()
    return bytes(made[:LONGEST])


class Lines:
    """The lines of ombud that ran."""

    def __init__(self) -> None:
        self.seen: set[tuple[Any, int]] = set()
        self.own = str(Path(ombud.__file__).parent)

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        return self.line if frame.f_code.co_filename.startswith(self.own) else None

    def line(self, frame: FrameType, event: str, arg: object) -> Any:
        self.seen.add((frame.f_code, frame.f_lineno))
        return self.line


def fault_of(target: Callable[[bytes], None], data: bytes) -> str:
    """Run a target; return what is wrong with how it ends, or nothing."""
    start = time.process_time()
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        target(data)
    except OmbudError as error:
        if len(str(error)) > 20_000:
            return f"an error message of {len(str(error)):,} characters"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {last.filename}:{last.lineno}: {error!s:.300}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    spent = time.process_time() - start
    return f"{spent:.1f} CPU seconds" if spent > LIMIT else ""


def _late(*_: object) -> None:
    raise TimeoutError(f"more than {LIMIT:g} CPU seconds")


def fuzz(name: str, minutes: float, seed: int, grow: bool) -> int:
    """Fuzz one target; print what was run and found; return the number of findings."""
    target, rng, lines = TARGETS[name], random.Random(f"{name}{seed}"), Lines()
    paths = sorted((HERE / "corpus" / name).glob("*"))
    corpus = [path.read_bytes() for path in paths] or [b""]
    found: dict[str, str] = {}
    runs, first, begin = 0, len(corpus), time.process_time()
    waiting = list(corpus)
    while time.process_time() - begin < minutes * 60:
        data = waiting.pop() if waiting else mutated(rng.choice(corpus), corpus, rng)
        before = len(lines.seen)
        sys.settrace(lines.trace)
        try:
            fault = fault_of(target, data)
        finally:
            sys.settrace(None)
        runs += 1
        key = fault.partition(": ")[0]
        if fault and key not in found:
            found[key] = fault
            _save("findings", name, data)
            sys.stderr.write(f"{name}: {fault}\n")
        elif not fault and len(lines.seen) > before and runs > first:
            corpus.append(data)
            if grow:
                _save("corpus", name, data)
    spent = (time.process_time() - begin) / 60
    sys.stdout.write(json.dumps({
        "target": name, "seed": seed, "CPU minutes": round(spent, 2), "runs": runs,
        "lines reached": len(lines.seen), "inputs": [first, len(corpus)], "findings": len(found),
    }) + "\n")  # fmt: skip
    return len(found)


def _save(kind: str, name: str, data: bytes) -> None:
    folder = HERE / kind / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / blake2b(data, digest_size=6).hexdigest()).write_bytes(data)


def _first_inputs() -> dict[str, list[bytes]]:
    """The inputs that the corpus was begun with."""
    import gzip
    import zipfile

    table = b"user,item,rating,time\n1,2,4.5,2020-01-01\n2,3,1,2021-01-01\n"
    frame, packed, zipped, arrow = BytesIO(), gzip.compress(table), BytesIO(), BytesIO()
    pl.DataFrame({"user": [1, 2], "item": ["a", "b"]}).write_parquet(frame)
    pl.DataFrame({"user": [1, 2], "item": ["a", "b"]}).write_ipc(arrow)
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("a.csv", table)
    marc = (b"00100nam a2200061 a 4500008000500000245001000005020001400015\x1e"
            b"12345\x1e10\x1faTitle\x1e  \x1fa0804429573\x1e\x1d")  # fmt: skip
    xml = (b'<?xml version="1.0"?><c xmlns="http://www.loc.gov/MARC21/slim"><record><leader>00'
           b'nam</leader><datafield tag="245" ind1="1" ind2="0"><subfield code="a">T</subfield>'
           b"</datafield></record></c>")  # fmt: skip
    texts = b'id,text,label\n1,"a, b",1\n2,c,0\n'
    lines = b'{"user": 1, "item": [1, 2], "score": [0.5, 0.1]}\n{"user": 2, "item": [3]}\n'
    document = b'{"text": "a b", "url": "http://a", "id": 1}\n{"text": null}\n'
    return {
        "marc": [marc, marc.replace(b" a2", b"  2") + marc, xml, b"1\t" + xml, b"\xff\xfe<"],
        "marc8": [b"Garc\xe2ia M\xe2arquez", b"\x1b$1!9H\x1b(B a\x1b(N\xc1", b"\x1bb2\x1bs", b"\x8e\x1b$"],
        "isbn": [b"0-8044-2957-X (pbk.) : $12.95", b"9780804429573 (set)", b"ISBN 080442957X 978-"],
        "condition": [
            b'metric == "gap" and low > 0.02', b'not (n < 5 or kind in ["gap", "ratio"])',
            b'verdict == "yes"', b"0 < value <= 1e3 and p_adjusted != -1", b'system = "a"',
        ],
        "reply": [
            b'{"s": 0.9, "c": {"a": 0.1}}',
            b'{"model": "m", "results": [{"flagged": true, "categories": {"hate": true}, '
            b'"category_scores": {"hate": 0.9}}]}',
            b'{"attributeScores": {"TOXICITY": {"summaryScore": {"value": 0.9}}}}',
            b'{"recommendations": [{"user": "a", "items": [1, 2], "scores": [0.2, 0.1]}, '
            b'{"user": 1, "items": ["x"]}]}',
            b"Wed, 21 Oct 2015 07:28:00 GMT", b"30.5", gzip.compress(b"{}"), b"sk-0123456789abcdef",
        ],
        "http": [
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nT: 1\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 429 Slow\r\nRetry-After: 3\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"{}"),
        ],
        "reader": [
            b"\0" + table, b"\1" + table.replace(b",", b"\t"), b"\2" + table.replace(b",", b"::"),
            b"\3" + lines, b"\4[" + lines.replace(b"\n", b",") + b"{}]", b"\5" + frame.getvalue(),
            b"\6" + arrow.getvalue(), b"\7" + packed, b"\x08" + zipped.getvalue(),
            *(bytes([14 * kind]) + texts for kind in range(10)),
            *(bytes([14 * kind]) + b"item,label,yes,no\n1,w,2,1\n2,v,0,3\n" for kind in range(10)),
            b"\x0c1 Q0 a 1 0.5 m\n", b"\x0duser_id:token\titem_id:token\n1\t2\n",
        ],
        "documents": [
            b"\0" + document, b"\1" + texts, b"\2" + texts.replace(b",", b"\t"), b"\3a b\n\nc\n",
            b"\4" + frame.getvalue(), b"\5" + gzip.compress(document), b"\6" + gzip.compress(texts),
        ],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", choices=[[], *TARGETS])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--grow", action="store_true", help="add inputs that reach new lines")
    parser.add_argument("--begin", action="store_true", help="write the first inputs")
    options = parser.parse_args()
    if options.begin:
        for name, inputs in _first_inputs().items():
            for data in inputs:
                _save("corpus", name, data)
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    return min(1, sum(fuzz(n, options.minutes, options.seed, options.grow)
                      for n in options.targets or TARGETS))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
