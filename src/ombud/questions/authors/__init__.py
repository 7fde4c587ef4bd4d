"""Authors: whose work is catalogued, read and recommended."""
