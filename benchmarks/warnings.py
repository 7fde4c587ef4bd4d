"""Permutation tests, amplification, shares: ombud, numpy, sparse products, numba, pandas.

    python benchmarks/warnings.py            full size
    python benchmarks/warnings.py --quick    about a minute

The cases are in ``_warnings_cases.py``. This file has the name of a module of the standard
library, and a script's own folder comes first on the path: whoever imports ``warnings`` from
here is given the standard one.
"""

if __name__ == "warnings":
    import os
    import sys

    _path = list(sys.path)
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [_folder for _folder in _path if os.path.abspath(_folder) != _here]
    del sys.modules["warnings"]
    import warnings  # noqa: F401 - the standard one takes this one's place in sys.modules

    sys.path[:] = _path

if __name__ == "__main__":
    from _warnings_cases import run

    run(__file__)
