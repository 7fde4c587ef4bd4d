"""Addresses, keys, and what looks like a key."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.errors import DataError, PlanError
from ombud.http.keys import (
    MASK,
    _cores,
    check_address,
    check_source,
    header_faults,
    normal_address,
    proxy_for,
    read_key,
    redact,
    secret_headers,
    secrets_in,
)

KEY = 'sk/secret-0123456789"abc'


@pytest.mark.parametrize(
    "url", ["http://example.org/v1", "HTTP://example.org/v1", "hTtP://EXAMPLE.org"]
)
def test_a_key_never_goes_in_clear_text_however_the_address_is_spelt(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with pytest.raises(PlanError, match="must be https://"):
        read_key("A_KEY", url, "example.org", "x")
    assert read_key("A_KEY", "HTTPS://Example.ORG:443/v1", "example.org", "x") == KEY


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/v1?key=abc",
        "https://example.org/v1?lang=en&api_key=abc",
        "https://example.org/v1?subscription-key=abc",
        "https://example.org/v1?accessToken=abc",
        "https://example.org/v1?x=sk-0123456789",
        "https://example.org/v1?KEY=",
    ],
)
def test_a_key_in_an_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(PlanError, match="may hold a key") as caught:
        check_address(url)
    assert "abc" not in str(caught.value) and "0123" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.org/services/T0001/B0002/a1B2c3D4e5F6g7H8i9J0k1L2",
        "https://api.example.org/bot1234567890:AAF-abcdefghijklmnopqrstuvwxyz01234/send",
        "https://example.org/v1/sk-0123456789abcdef/moderate",
        "https://example.org/v1/%73k-0123456789abcdef/moderate",
        "https://example.org/key/0123456789/moderate",
        "https://example.org/v1;token=abcdefgh/moderate",
        "https://example.org/api_key=abcdefgh",
        "https://example.org/v1/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln/x",
        "https://example.org/v1/0a1b2c3d4e5f60718293a4b5c6d7e8f9/moderate",
        "https://example.org/v1#access_token=abcdefgh1",
        "https://example.org/v1?code=0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "https://example.org/v1?accesstoken=abc",
        "https://example.org/v1?apiKeys=1&subscriptionkey=abc",
    ],
)
def test_a_key_in_a_path_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(PlanError, match="may hold a key") as caught:
        check_address(url)
    assert not any(part in str(caught.value) for part in ("0123", "abcdef", "a1B2", "0a1b", "eyJ"))


@pytest.mark.parametrize(
    "path",
    [
        "/v1/projects/p/locations/us-central1/endpoints/1234567890123456789:predict",
        "/v1beta/models/gemini-1.5-flash-8b-exp-0924:generateContent",
        "/client/v4/accounts/023e105f4ecef8ad9ca31a8372d0c353/ai/run/@cf/meta/llama-3.1-8b-instruct",
        "/deployments/3fa85f64-5717-4562-b3fc-2c963f66afa6/score",
        "/endpoints/jumpstart-dft-meta-llama-3-8b-20240424-093012/invocations",
        "/models/meta-llama/Llama-Guard-3-11B-Vision/v1.0",
        "/openai/deployments/gpt-4o-mini-2024-07-18/chat/completions?api-version=2024-02-15-preview",
        "/key/moderate",
        "/keywords/tokens/monkey/authors/session/start",
    ],
)
def test_paths_that_name_things(path: str) -> None:
    assert check_address(f"https://example.org{path}") == "example.org"


def test_other_addresses() -> None:
    assert check_address("https://example.org/v1?lang=en&max_tokens=5&keyword=x") == "example.org"
    for url in ("ftp://x/", "https://", "http://[::1", "https://a b/", "https://é.org", "x"):
        with pytest.raises(PlanError):
            check_address(url)
    for url in ("https://me:pass@example.org/", "https://127.0.0.1\\@evil.example/"):
        with pytest.raises(PlanError) as caught:
            check_address(url)
        assert "pass" not in str(caught.value).replace("password", "")
    with pytest.raises(DataError, match="not https"):
        check_source("HTTP://example.org/x")
    assert check_source("HTTP://127.0.0.1/x") == "127.0.0.1"
    assert normal_address("HTTP://LOCALHOST:80/a?b=1") == "http://localhost/a?b=1"


def test_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    for local in (
        "http://127.0.0.1:5/x",
        "HTTP://LocalHost/x",
        "http://[::1]:8/x",
        "http://127.9.9.9/",
    ):
        assert proxy_for(local) is None
    assert proxy_for("http://models.internal:8000/x") == "http://proxy.example:3128"
    monkeypatch.setenv("no_proxy", "models.internal")
    assert proxy_for("http://models.internal:8000/x") is None
    monkeypatch.setenv("https_proxy", "socks5://proxy.example:1080")
    with pytest.raises(PlanError, match="neither http"):
        proxy_for("https://example.org/")


@pytest.mark.parametrize(
    "name",
    [
        "api-key",
        "Ocp-Apim-Subscription-Key",
        "X-Goog-Api-Key",
        "x-api-key",
        "Authorization",
        "Proxy-Authorization",
        "Cookie",
        "X-Auth-Token",
        "apikey",
        "X-Amz-Security-Token",
        "clientSecret",
        "X-Accesstoken",
        "x_apikey",
        "XApiKey",
        "X-Passphrase",
        "subscriptionkey",
        "X-Auth",
        "X-Amz-Signature",
        "X-Userpassword",
    ],
)
def test_headers_that_carry_keys(name: str) -> None:
    assert secret_headers({name: "x", "X-Lang": "en", "Idempotency-Key": "1"}) == [name]


def test_values_that_look_like_keys() -> None:
    odd = {"X-A": "Bearer abc", "X-B": "sk-abc", "X-C": "AIzaSy", "X-D": "eyJhbGciOi.x", "X-E": "e"}
    assert secret_headers(odd) == ["X-A", "X-B", "X-C", "X-D"]
    odd = {
        "X-A": "dXNlcjpwYXNzd29yZA==",
        "X-B": "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "X-C": "SG.abcdefgh1",
    }
    plain = {"X-Run": "3fa85f64-5717-4562-b3fc-2c963f66afa6", "Accept-Language": "en-GB,en;q=0.9"}
    assert secret_headers(odd | plain | {"X-Model": "llama-3.1-8b", "X-Max-Tokens": "5"}) == [*odd]
    template = {"a": [{"password": "hunter2hunter2"}, {"key": "en"}], "key": "{text}", "t": "ghp_x"}
    assert secrets_in(template) == ["password", "t"]


def test_headers_that_http_cannot_carry() -> None:
    assert header_faults({"X-A": "ok", "X-B": "tab\there"}) != []
    for value in ("é", "a\nb", "a\rb", "\0", "\ud800"):
        [fault] = header_faults({"X-A": value})
        assert value not in fault or len(value) == 1 and value not in fault.replace("X-A", "")


def forms(key: str) -> list[bytes]:
    plain = json.dumps({"error": f"you sent Bearer {key}!"})
    escaped = "".join(f"\\u{ord(c):04x}" for c in key)
    return [
        plain.encode(),
        plain.replace("/", "\\/").encode(),
        f'{{"error": "{escaped}"}}'.encode(),
        f'{{"error": "{escaped.upper().replace("U", "u")}"}}'.encode(),
        plain.encode("utf-16"),
        plain.encode("utf-16-le"),
        plain.encode("utf-16-be"),
        plain.encode("utf-32"),
        plain.encode("utf-8-sig"),
        json.dumps({"inner": json.dumps({"deeper": json.dumps(key)})}).encode(),
        json.dumps({key: [1, {"x": key}]}).encode(),
        f'{{"a": {json.dumps(key)}, "a": "the second wins"}}'.encode(),
        f"<p>{key.replace('&', '&amp;')}</p>".replace('"', "&quot;").encode(),
        b"key=" + "".join(f"%{ord(c):02x}" for c in key).encode(),
        f"plain {key} text".encode(),
        f"plain {key} text".encode("utf-16"),
        key.upper().encode(),
        b"[" * 50_000 + json.dumps(key).encode(),
        *(encoded(key, form).encode() for form in ENCODED),
        *(json.dumps({"error": [encoded(key, form)]}).encode() for form in ENCODED),
        *(json.dumps({"error": encoded(key, form)}).encode("utf-16") for form in ENCODED),
    ]


# how a service may send a key back in other letters
ENCODED: dict[str, Callable[[bytes], str]] = {
    "base64": lambda key: base64.b64encode(key).decode(),
    "base64 amid text": lambda key: "x" + base64.b64encode(b"ab" + key + b"c").decode() + "x",
    "base64 of a header": lambda key: base64.b64encode(b"Bearer " + key + b"\n").decode(),
    "base64 of a login": lambda key: base64.b64encode(b"user:" + key).decode(),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(b"?" + key).decode().rstrip("="),
    "base64 in lines": lambda key: base64.encodebytes(b"k=" + key * 5).decode(),
    "base64 twice": lambda key: base64.b64encode(base64.b64encode(b"a" + key)).decode(),
    "base64 of UTF-16": lambda key: base64.b64encode(key.decode().encode("utf-16")).decode(),
    "base64, its signs as percents": lambda key: base64.b64encode(key).decode().replace("=", "%3D"),
    "hex": lambda key: key.hex(),
    "hex in capitals": lambda key: key.hex().upper(),
    "hex with colons": lambda key: key.hex(":"),
    "hex with blanks": lambda key: key.hex(" "),
    "hex of Python": lambda key: "".join(f"\\x{c:02x}" for c in key),
    "hex of C": lambda key: ", ".join(f"0x{c:02X}" for c in key),
    "hex of UTF-16": lambda key: key.decode().encode("utf-16-le").hex(),
    "percents": lambda key: "".join(f"%{c:02X}" for c in key),
    "percents twice": lambda key: "".join(f"%25{c:02X}" for c in key),
    "quoted-printable": lambda key: "".join(f"={c:02X}" for c in key),
    "quoted-printable in lines": lambda key: "=\n".join(f"={c:02X}" for c in key),
    "quoted-printable softly": lambda key: "=\r\n".join(key.decode()),
    "entities": lambda key: "".join(f"&#x{c:x};" for c in key),
}


def encoded(key: str, form: str) -> str:
    return ENCODED[form](key.encode())


@pytest.mark.parametrize("number", range(len(forms(KEY))))
def test_a_key_is_found_in_what_the_bytes_mean(number: int) -> None:
    body = forms(KEY)[number]
    cleaned = redact(body, KEY)
    shown = cleaned.replace(b"\0", b"").lower()
    assert all(encoded(KEY, form).lower().encode() not in shown for form in ENCODED)
    assert b"0123456789" not in shown and b"\\u0073\\u006b" not in shown and b"%73%6b" not in shown
    assert MASK.encode() in cleaned or b"the second wins" in cleaned
    if body[:1] == b"{":
        json.loads(cleaned)


def test_what_holds_no_key_stays_as_it_came() -> None:
    for body in (b'{"a" :  1}', b"\xff\xfe\0", b"", b"100% &amp; \\u0041", "{}".encode("utf-16")):
        assert redact(body, KEY) == body
    assert redact(b"a word", "word") == b"a word", "a short word is no secret"
    assert redact(b"abc", "") == b"abc"
    assert redact(b'{"id": 1234567890123}', "1234567890") == b'{"id": "[key removed]"}'


@given(st.binary(min_size=8, max_size=40), st.binary(max_size=7), st.binary(max_size=7))
def test_base64_is_found_wherever_the_key_begins(key: bytes, before: bytes, after: bytes) -> None:
    text = base64.b64encode(before + key + after)
    assert any(core in text.translate(bytes.maketrans(b"+/", b"-_")) for core in _cores(key))


@given(st.text(st.characters(max_codepoint=0x2FF), max_size=300))
def test_other_replies_stay_as_they_came(text: str) -> None:
    body = json.dumps({"echo": text, "data": base64.b64encode(text.encode()).decode()}).encode()
    assert redact(body, "sk-nowhere-0123456789abcdef") == body


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40),
    st.recursive(
        st.text(max_size=8) | st.integers() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=8,
    ),
    st.integers(0, 2),
)
def test_no_reply_keeps_the_key(key: str, content: object, depth: int) -> None:
    inner: object = {"seen": f"Bearer {key}", "rest": content}
    for _ in range(depth):
        inner = {"nested": json.dumps(inner)}
    for encoding in ("utf-8", "utf-16"):
        cleaned = redact(json.dumps(inner).encode(encoding), key)
        assert key not in json.dumps(json.loads(cleaned))
        found = json.loads(cleaned)
        while isinstance(found, dict) and "nested" in found and found["nested"] != MASK:
            try:
                found = json.loads(found["nested"])
            except ValueError:  # a key with quotes or backslashes may take an escape along
                found = found["nested"]
        assert key not in str(found)
