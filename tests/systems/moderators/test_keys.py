"""Keys go where they belong and are written nowhere."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ombud.data.texts import Texts
from ombud.errors import OmbudError, PlanError
from ombud.http.keys import read_key
from ombud.systems.moderators import (
    AnthropicMessages,
    HttpModerator,
    OpenAIModeration,
    Perspective,
    RunSettings,
)

SECRET = 'sk-secret-0123456789"abcdef'


def texts_of(*rows: str) -> Texts:
    n = len(rows)
    return Texts(np.arange(n), np.array(rows, dtype=object), np.full(n, -1, dtype=np.int8))


def test_a_key_is_never_written(
    stub_with: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    stub = stub_with(key=SECRET)
    said: list[str] = []

    def note(*arguments: Any) -> None:
        said.append(str(arguments))

    run = RunSettings(retries=1, backoff=0.01, concurrency=1)
    for edition in ("one", "two"):
        for system in (
            Perspective(base_url=stub.url, edition=edition, run=run),
            OpenAIModeration(
                model="omni-moderation-2024-09-26",
                base_url=f"{stub.url}/v1",
                edition=edition,
                run=run,
            ),
            AnthropicMessages(
                model="claude-haiku-5-5", base_url=stub.url, edition=edition, run=run
            ),
        ):
            monkeypatch.setenv(system.key_env, SECRET)
            # Faults whose body repeats all headers, the key among them.
            stub.faults["b"].extend(["400"])
            stub.faults["c"].extend(["500", "500"])
            stub.faults["d"].extend(["403"])
            try:
                system.moderate(texts_of("a", "b", "c", "d"), progress=note)
            except OmbudError as stopped:
                said.append("".join(traceback.format_exception(stopped)))
            assert stub.asked["d"], "the faults were not reached"
            said += [repr(system), str(system.__dict__), str(system.quote(texts_of("e")))]
            said += [str(system.runner().collect(texts_of("a", "b", "c", "d"))), system.identity]
    assert any("403" in text for text in said)
    assert sum("key removed" in text for text in said) >= 6, "the stub did not repeat the key"
    said += [record.getMessage() + str(record.args) for record in caplog.records]
    said += list(capfd.readouterr())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".sqlite" for path in files)
    for form in (SECRET, SECRET.replace('"', '\\"'), "0123456789"):
        assert not any(form in text for text in said)
        assert not any(form.encode() in path.read_bytes() for path in files)


def test_a_key_goes_only_to_its_own_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    own = "api.openai.com"
    for url in ("https://api.openai.com/v1", "http://127.0.0.1:1/v1", "http://localhost/v1"):
        assert read_key("OPENAI_API_KEY", url, own, "x") == SECRET
    for url in (
        "https://evil.example/v1",
        "https://api.openai.com.evil.example/v1",
        "https://127.0.0.1.evil.example/v1",
        "https://evil.example/api.openai.com",
    ):
        with pytest.raises(PlanError, match="OMBUD_KEY_HOSTS"):
            read_key("OPENAI_API_KEY", url, own, "x")
        stolen = OpenAIModeration(
            model="omni-moderation-2024-09-26", base_url=url, cache=tmp_path / "a.sqlite"
        )
        with pytest.raises(PlanError, match="OMBUD_KEY_HOSTS"):
            stolen.moderate(texts_of("a"))
    with pytest.raises(PlanError, match="https://"):
        read_key("OPENAI_API_KEY", "http://api.openai.com/v1", own, "x")
    monkeypatch.setenv("OMBUD_KEY_HOSTS", "other.example, proxy.example")
    assert read_key("OPENAI_API_KEY", "https://proxy.example/v1", own, "x") == SECRET


def test_a_key_that_is_absent_or_odd(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://api.openai.com/v1"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(PlanError, match="set the environment variable OPENAI_API_KEY"):
        read_key("OPENAI_API_KEY", url, "api.openai.com", "x")
    monkeypatch.setenv("OPENAI_API_KEY", "line\nbreak-secret")
    with pytest.raises(PlanError) as caught:
        read_key("OPENAI_API_KEY", url, "api.openai.com", "x")
    assert "secret" not in str(caught.value)
    with pytest.raises(PlanError) as caught:
        read_key("sk-a-key-pasted-here", url, "api.openai.com", "x")
    assert "pasted" not in str(caught.value)
    assert read_key("", url, "", "x") == ""


def test_a_key_in_the_wrong_place_stops_before_anything_is_asked(
    stub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OWN_KEY", raising=False)
    system = HttpModerator(
        base_url=f"{stub.url}/plain",
        score_path="score",
        threshold=0.5,
        key_env="OWN_KEY",
        cache=tmp_path / "a.sqlite",
    )
    with pytest.raises(PlanError, match="OWN_KEY"):
        system.moderate(texts_of("a"))
    assert not stub.asked


def test_a_key_that_is_repeated_behind_escapes_is_written_nowhere(
    stub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk/secret-0123456789"
    monkeypatch.setenv("OWN_KEY", key)
    bodies = [
        json.dumps({"score": key}).replace("/", "\\/").encode(),
        json.dumps({"flag": "".join(f"\\u{ord(c):04x}" for c in key)})
        .replace("\\\\", "\\")
        .encode(),
        json.dumps({"flag": key}).encode("utf-16"),
        f"<html>{key}</html>".encode("utf-16"),
    ]
    for i, body in enumerate(bodies):
        stub.faults[f"text {i}"].append(f"body:{body.hex()}")
    system = HttpModerator(
        base_url=f"{stub.url}/plain",
        flag_path="flag",
        key_env="OWN_KEY",
        cache=tmp_path / "a.sqlite",
    )
    system.moderate(texts_of(*[f"text {i}" for i in range(len(bodies))]))
    said = str(system.last_report)
    for path in tmp_path.iterdir():
        said += path.read_bytes().replace(b"\0", b"").decode("latin-1")
    assert "0123456789" not in said and "\\u0073\\u006b" not in said
    assert "key removed" in said


@pytest.mark.parametrize(
    "settings",
    [
        {"headers_sent": {"api-key": "x"}},
        {"headers_sent": {"Ocp-Apim-Subscription-Key": "x"}},
        {"headers_sent": {"X-Goog-Api-Key": "x"}},
        {"headers_sent": {"X-Team": "sk-0123456789"}},
        {"base_url": "https://example.org/v1?key=0123456789"},
        {"template": {"text": "{text}", "api_key": "0123456789abcdef"}},
        {"key_prefix": "Bearer 0123456789abcdef0123"},
    ],
)
def test_a_plan_with_what_looks_like_a_key_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="may hold a key") as caught:
        HttpModerator(**{"base_url": "https://example.org", "flag_path": "f", **settings})
    assert "0123456789" not in str(caught.value)


@pytest.mark.parametrize(
    "settings", [{"headers_sent": {"X-Team": "caf\u00e9"}}, {"key_header": "a b"}]
)
def test_a_header_that_cannot_be_sent_is_a_sentence(settings: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="header"):
        HttpModerator(base_url="https://example.org", flag_path="f", **settings)


def test_a_header_of_a_provider_that_cannot_be_sent_is_a_sentence(
    stub: Any, tmp_path: Path
) -> None:
    system = AnthropicMessages(
        model="claude-haiku-5-5",
        base_url=stub.url,
        key_env="",
        api_version="caf\u00e9",
        cache=tmp_path / "a.sqlite",
    )
    with pytest.raises(PlanError, match="anthropic-version"):
        system.moderate(texts_of("a"))
