"""Everything that ombud itself registers; imported on the first look-up of a name."""

import ombud.metrics.accuracy  # noqa: F401
import ombud.systems.moderators  # noqa: F401
import ombud.systems.recommenders  # noqa: F401
import ombud.systems.recorded  # noqa: F401
import ombud.worlds.presets  # noqa: F401
