"""One way to talk to services and servers: pace, keys, answers kept, files fetched."""

__all__: list[str] = []
