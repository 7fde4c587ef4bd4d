"""Data files of the linker: placeholders, identity terms, MARC-8 code tables."""

__all__: list[str] = []
