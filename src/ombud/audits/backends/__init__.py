"""Where an audit is computed: in memory, in blocks on disk, on a Spark cluster."""

__all__: list[str] = []
