"""Keys: read from the environment, sent to the hosts they belong to, and shown to nobody.

A plan is a file from anywhere. If it could name both the environment variable and the address,
it could send any secret of this machine to any host. So a key goes only to the service's own
host, to this machine, or to a host that the user has named in ``OMBUD_KEY_HOSTS`` (a
comma-separated list), and never over plain HTTP to another machine.
"""

from __future__ import annotations

import json
import os
import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from ombud.errors import PlanError

__all__ = ["HOSTS_VARIABLE", "MASK", "check_address", "is_loopback", "read_key", "redact"]

HOSTS_VARIABLE = "OMBUD_KEY_HOSTS"
MASK = "[key removed]"


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(url: str) -> str:
    """Return the host of an address, or say what is wrong with the address."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as fault:
        raise PlanError(f"address {url!r:.200} cannot be read: {fault}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise PlanError(f"address {url!r:.200} must begin with https:// or http:// and name a host")
    if parts.username or parts.password:
        raise PlanError("an address must not hold a user name or password; use key_env")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise PlanError(f"address {url!r:.200} holds spaces or non-ASCII characters; encode them")
    return host


def read_key(variable: str, url: str, own_host: str, system: str) -> str:
    """Return the key in an environment variable, if it may be sent to an address.

    Parameters
    ----------
    variable
        The environment variable; empty for a service without a key.
    url
        Where the key would go.
    own_host
        The service's own host.
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
    if host.lower() not in named | {own_host} and not is_loopback(host):
        raise PlanError(
            f"{system}: the key in {variable} belongs to {own_host or 'no known host'}, but the "
            f"address is at {host}. If you trust that host with this key, set "
            f"{HOSTS_VARIABLE}={host}"
        )
    if url.startswith("http://") and not is_loopback(host):
        raise PlanError(f"{system}: the address of {host} must be https://, or the key is readable")
    key = os.environ.get(variable, "").strip()
    if not key:
        raise PlanError(f"{system}: no key; set the environment variable {variable}")
    if not key.isascii() or not key.isprintable():
        raise PlanError(f"{system}: the key in {variable} holds characters no header may hold")
    return key


def redact(body: bytes, key: str) -> bytes:
    """Return a reply without the key, should the service have repeated it."""
    if not key:
        return body
    for form in {key, json.dumps(key)[1:-1]}:
        body = body.replace(form.encode(), MASK.encode())
    return body
