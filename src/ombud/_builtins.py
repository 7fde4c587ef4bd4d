"""Everything that ombud itself registers; imported on the first look-up of a name."""

import ombud.systems.recorded  # noqa: F401
