"""``python -m ombud`` is the command line."""

from ombud.cli import main

if __name__ == "__main__":
    main()
