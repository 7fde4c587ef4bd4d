"""The annotation app: people rate texts, and see results, in a browser on your own machine."""

from __future__ import annotations
