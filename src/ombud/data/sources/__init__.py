"""Published data sets: how each is read, and what everyone should know about it, one file each."""

__all__: list[str] = []
