"""The pages of the app: served by Starlette, drawn by Jinja2, with no build step."""

from __future__ import annotations
