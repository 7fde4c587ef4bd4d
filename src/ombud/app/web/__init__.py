"""The pages of the app: served by Starlette, drawn by Jinja2, with no build step."""

from __future__ import annotations

from ombud.app.web.server import create_app, open_site, open_socket, serve
from ombud.app.web.site import Site

__all__ = ["Site", "create_app", "open_site", "open_socket", "serve"]
