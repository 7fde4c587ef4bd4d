"""Delicate text: which of it is found, which is missed, and what sways the finder."""
