"""One way to talk to services and servers; internal, what users need is exported by `systems`.

``client`` sends, ``pace`` waits, ``keys`` keeps secrets, ``store`` keeps answers, ``backlog`` says
what is still to be asked, ``dispatch`` asks it, ``download`` fetches files.
"""

__all__: list[str] = []
