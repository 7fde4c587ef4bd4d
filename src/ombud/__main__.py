"""``python -m ombud`` is the command line."""

from ombud.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
