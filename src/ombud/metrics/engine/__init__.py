"""The engine: from measured rows to estimates with intervals, for groups, labels and systems."""
