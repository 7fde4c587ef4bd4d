"""Keys and addresses: a key goes to the hosts it belongs to, and is shown to nobody.

A plan is a file from anywhere. If it could name both the environment variable and the address,
it could send any secret of this machine to any host. So a key goes only to the service's own
host, to this machine, or to a host that the user has named in ``OMBUD_KEY_HOSTS`` (a
comma-separated list), never over plain HTTP to another machine, and never through a proxy to
this machine. A plan is also copied into results and reports, so it must not hold a key itself.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from ombud.errors import DataError, PlanError

HOSTS_VARIABLE = "OMBUD_KEY_HOSTS"
MASK = "[key removed]"

_SHORTEST = 8
_RANDOM_LENGTH = 20
_MOST_MIXED = 4
_ROUNDS = 6
_WORDS = frozenset(
    {"auth", "authentication", "authorization", "apikey", "bearer", "cookie", "credential"}
    | {"credentials", "jwt", "key", "passwd", "password", "pwd", "secret", "session", "sig"}
    | {"signature", "token"}
)
_HARMLESS = frozenset({"idempotency-key", "sec-websocket-key"})
_JOINED = re.compile(
    r"(token|secret|passwo?r?d|passphrase|credentials?|(access|account|api|app|auth|client|license"
    r"|master|private|secret|service|shared|signing|storage|subscription|user)_?keys?)$",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"^(bearer |basic |[spr]k[-_]|gh[oprsu]_|github_pat_|glpat-|glsa_|gsk_|hf_|npm_|nvapi-|pypi-"
    r"|pplx-|r8_|shpat_|whsec_|xox[abeprs]-|SG\.[\w-]{8}|AIza|AKIA|ASIA[A-Z0-9]{12}|ATATT|ya29\."
    r"|eyJ[\w-]+\.|(bot)?\d{8,}:[\w-]{30,})",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RESOURCE = re.compile(
    r"(account|app|dataset|deployment|endpoint|instance|model|org|organization|pipeline|project"
    r"|resource|site|subscription|team|tenant|user|workspace|zone)s?",
    re.IGNORECASE,
)
_MIXED = re.compile(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_QUOTED = re.compile(r"=(?:([0-9a-fA-F]{2})|[ \t]*\r?\n)")
_NOT_HEX = bytes(set(range(256)) - set(b"0123456789abcdef"))
_ONE_ALPHABET = bytes.maketrans(b"+/", b"-_")
_BREAKS = {"n": "\n", "r": "\r"}
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _parts(url: str) -> tuple[SplitResult, str]:
    parts = urlsplit(url)
    host, _ = parts.hostname or "", parts.port
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("it holds spaces or non-ASCII characters; encode them")
    return parts, host


def check_address(url: str) -> str:
    """Return the host of an address, or say what is wrong with the address."""
    try:
        parts, host = _parts(url)
    except ValueError as fault:
        raise PlanError(f"address {_shown(url)} cannot be read: {fault}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise PlanError(
            f"address {_shown(url)} must begin with https:// or http:// and name a host"
        )
    if "@" in parts.netloc:
        raise PlanError("an address must not hold a user name or password; use key_env")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if secret := sorted({name for name, value in pairs if _is_secret(name, value)}):
        raise PlanError(
            f"the address of {host} may hold a key, in {', '.join(secret)}: addresses are written "
            "into results and reports; use key_env"
        )
    if _path_holds_key(parts.path) or _path_holds_key(parts.fragment):
        raise PlanError(
            f"the path of the address of {host} may hold a key: addresses are written into results "
            "and reports; use key_env, or ask the service for a header that carries the key"
        )
    return host


def _path_holds_key(path: str) -> bool:
    before = ""
    for segment in re.split(r"[/;,&?]", unquote(path)):
        name, equals, value = segment.partition("=")
        value, name = (value, name) if equals else (segment, before)
        if _SECRET.match(value):
            return True
        long = len(value) >= _SHORTEST and (equals or any(c.isdigit() for c in value))
        if long and _names_secret(name):
            return True
        if any(map(_looks_random, re.split("[:@!]", value))) and not _RESOURCE.fullmatch(name):
            return True
        before = segment
    return False


def _looks_random(value: str) -> bool:
    """Return whether letters and digits are mixed as in a key; UUIDs are the names of things."""
    if len(value) < _RANDOM_LENGTH or _UUID.fullmatch(value) or not value.isascii():
        return False
    return " " not in value and len(_MIXED.findall(value)) >= _MOST_MIXED


def _is_login(value: str) -> bool:
    """Return whether a value is user and password as HTTP's Basic writes them."""
    try:
        plain = base64.b64decode(value, validate=True).decode("ascii")
    except ValueError:
        return False
    return ":" in plain[1:-1] and plain.isprintable()


def check_source(url: str) -> str:
    """Return the host of an address that is encrypted, or on this machine."""
    try:
        parts, host = _parts(url)
    except ValueError as error:
        raise DataError("address", [f"{url!r:.200} cannot be read: {error}"]) from None
    if "@" in parts.netloc:
        raise DataError("address", ["it must not hold a user name or a password"])
    plain = parts.scheme == "http" and is_loopback(host)
    if not host or not (parts.scheme == "https" or plain):
        raise DataError("address", [f"{url!r:.200} is not https:// and not on this machine"])
    return host


def _shown(url: str) -> str:
    """Return an address as far as it may be shown: what follows a question mark may be a key."""
    return repr(url.partition("?")[0].rpartition("@")[2])[:200]


def normal_address(url: str) -> str:
    """Return an address in one spelling: scheme and host in lower case, no usual port.

    Examples
    --------
    >>> normal_address("HTTPS://API.Example.org:443/v1/")
    'https://api.example.org/v1'
    """
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in {None, usual} else f":{parts.port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path.rstrip('/')}{query}"


def proxy_for(url: str) -> str | None:
    """Return the proxy of this machine's settings for an address; none for this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy and urlsplit(proxy).scheme.lower() not in {"http", "https"}:
        raise PlanError(
            f"the proxy for {host} is neither http:// nor https://, which is all that ombud knows; "
            f"name the host in no_proxy to go without"
        )
    return proxy


def host_matches(host: str, pattern: str) -> bool:
    """Return whether a host is a service's own; ``*`` stands for one label of its name.

    Examples
    --------
    >>> host_matches("mine.cognitiveservices.azure.com", "*.cognitiveservices.azure.com")
    True
    >>> host_matches("azure.com.evil.example", "*.cognitiveservices.azure.com")
    False
    """
    labels, wanted = host.lower().split("."), pattern.split(".")
    return len(labels) == len(wanted) and all(
        w in ("*", label) and label for label, w in zip(labels, wanted, strict=True)
    )


def read_key(variable: str, url: str, own_host: str, system: str) -> str:
    """Return the key in an environment variable, if it may be sent to an address.

    Parameters
    ----------
    variable
        The environment variable; empty for a service without a key.
    url
        Where the key would go.
    own_host
        The service's own host; see `host_matches`.
    system
        The system's name, for messages.
    """
    host = check_address(url)
    if not variable:
        return ""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise PlanError(
            f"{system}: key_env must be the *name* of an environment variable (letters, digits, "
            "_); what was given is not shown, in case it is a key"
        )
    named = {h.strip().lower() for h in os.environ.get(HOSTS_VARIABLE, "").split(",")}
    if host not in named and not host_matches(host, own_host) and not is_loopback(host):
        raise PlanError(
            f"{system}: the key in {variable} belongs to {own_host or 'no known host'}, but the "
            f"address is at {host}. If you trust that host with this key, set "
            f"{HOSTS_VARIABLE}={host}"
        )
    if urlsplit(url).scheme != "https" and not is_loopback(host):
        raise PlanError(f"{system}: the address of {host} must be https://, or the key is readable")
    key = os.environ.get(variable, "").strip()
    if not key:
        raise PlanError(f"{system}: no key; set the environment variable {variable}")
    if not key.isascii() or not key.isprintable():
        raise PlanError(f"{system}: the key in {variable} holds characters no header may hold")
    return key


def header_faults(headers: Mapping[str, str]) -> list[str]:
    """Return what is wrong with headers that HTTP cannot carry; values are not shown.

    Examples
    --------
    >>> header_faults({"X-Team": "caf\u00e9", "X-Lang": "en"})
    ['the header X-Team holds characters that no header may hold']
    """
    faults = []
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            faults.append(f"{name!r:.60} is no name of a header")
        elif any(c in "\r\n" for c in value):
            faults.append(f"a header holds a line break: {name}")
        elif not value.isascii() or not value.isprintable():
            faults.append(f"the header {name} holds characters that no header may hold")
    return faults


def secret_headers(headers: Mapping[str, str]) -> list[str]:
    """Return the names of headers that carry a key by their name, or by how the value looks.

    Examples
    --------
    >>> secret_headers({"Ocp-Apim-Subscription-Key": "x", "X-Team": "sk-abc", "X-Lang": "en"})
    ['Ocp-Apim-Subscription-Key', 'X-Team']
    """
    return sorted(name for name, value in headers.items() if _is_secret(name, value))


def secrets_in(template: Any) -> list[str]:
    """Return the names under which a template holds what looks like a key.

    Examples
    --------
    >>> secrets_in({"text": "{text}", "auth": {"api_key": "0123456789abcdef"}, "key": "{text}"})
    ['api_key']
    """
    result, waiting = set(), [template]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            waiting.extend(here.values())
            result |= {
                str(name)
                for name, value in here.items()
                if isinstance(value, str) and "{text}" not in value and "{id}" not in value
                if _SECRET.match(value)
                or _looks_random(value)
                or (len(value) >= _SHORTEST and " " not in value and _is_secret(str(name), value))
            }
        elif isinstance(here, list):
            waiting.extend(here)
    return sorted(result)


def _is_secret(name: str, value: str) -> bool:
    if name.lower() in _HARMLESS:
        return False
    return (
        _names_secret(name)
        or _SECRET.match(value) is not None
        or _looks_random(value)
        or _is_login(value)
    )


def _names_secret(name: str) -> bool:
    words = {word.lower() for word in _WORD.findall(name)}
    return bool(words & _WORDS) or _JOINED.search(name) is not None


def redact(body: bytes, *keys: str) -> bytes:
    r"""Return a reply without the keys, should the service have repeated one.

    A key is looked for in what the bytes *mean*: behind JSON, HTML, URL and quoted-printable
    escapes, several deep, in UTF-16 and UTF-32, in any case of letters; and in Base64 (also amid
    other text, and twice over) and hexadecimal. A reply that holds none is returned as it came;
    one that does is decoded, cleaned and written again as JSON; and what cannot be cleaned is
    replaced as a whole. A word of under eight characters is no secret: a local server's key may
    be any word, and it would be cut out of every reply. A key that is encoded otherwise (reversed,
    Base32, encrypted), or cut into pieces, is not found.

    Examples
    --------
    >>> redact(b'{"you": "sk\\/0123\\u0034567"}', "sk/01234567")
    b'{"you": "[key removed]"}'
    """
    for key in keys:
        if len(key) < _SHORTEST or not _holds(body, key):
            continue
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            cleaned = body.replace(key.encode(), MASK.encode())
        else:
            cleaned = _dumped(content, key)
        body = json.dumps(MASK).encode() if _holds(cleaned, key) else cleaned
    return body


def _holds(body: bytes, key: str) -> bool:
    return _shows(body.replace(b"\0", b"").decode("latin-1"), key)


def _shows(text: str, key: str) -> bool:
    lower, hexed, encoded = key.lower(), *_encoded(key)
    for form in _meanings(text):
        if lower in form.lower():
            return True
        data = form.encode(errors="replace")
        digits = re.sub(rb"0x|\\x", b"", data.lower()).translate(None, _NOT_HEX)
        letters = data.translate(_ONE_ALPHABET, b" \t\r\n")
        if any(one in digits for one in hexed) or any(one in letters for one in encoded):
            return True
    return False


@cache
def _encoded(key: str) -> tuple[list[bytes], list[bytes]]:
    """Return a key in hexadecimal, and what Base64 makes of it wherever it begins."""
    plain = [key.encode(), key.encode("utf-16-le")]
    once = {core for data in plain for core in _cores(data)}
    twice = {core for data in _cores(plain[0]) for core in _cores(data)}
    return [data.hex().encode() for data in plain], [*once, *twice]


def _cores(data: bytes) -> list[bytes]:
    """Return the letters of Base64 that depend on some bytes alone, at each of three positions."""
    result = []
    for shift in range(3):
        whole = base64.urlsafe_b64encode(bytes(shift) + data)
        result.append(whole[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6])
    return result


def _meanings(text: str) -> Iterable[str]:
    """Yield a text, and what it means when its escapes are read, again and again."""
    yield text
    if not any(sign in text for sign in "\\%&="):
        return
    each = (_without_backslashes, html.unescape, _without_percents, _without_equals)
    # Also one kind of escape alone: a key may itself look escaped in another way.
    for reads in (*((read,) for read in each), each):
        form = text
        for _ in range(_ROUNDS):
            before = form
            for read in reads:
                form, last = read(form), form
                if form != last:
                    yield form
            if form == before:
                break


def _without_equals(text: str) -> str:
    """Return what quoted-printable means."""
    return _QUOTED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "", text)


def _without_backslashes(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text)


def _without_percents(text: str) -> str:
    return unquote(text, "latin-1")


def _unescaped(found: re.Match[str]) -> str:
    wide, narrow, plain = found.groups()
    return chr(int(wide or narrow, 16)) if wide or narrow else _BREAKS.get(plain, plain)


def _dumped(content: Any, key: str) -> bytes:
    try:
        return json.dumps(_cleaned(content, key)).encode()
    except (RecursionError, ValueError):
        return json.dumps(MASK).encode()


def _cleaned(content: Any, key: str) -> Any:
    if isinstance(content, dict):
        return {_cleaned(name, key): _cleaned(value, key) for name, value in content.items()}
    if isinstance(content, list):
        return [_cleaned(value, key) for value in content]
    if isinstance(content, str):
        content = re.sub(re.escape(key), lambda _: MASK, content, flags=re.IGNORECASE)
        return MASK if _shows(content, key) else content
    if isinstance(content, int | float) and not isinstance(content, bool) and key in str(content):
        return MASK
    return content
