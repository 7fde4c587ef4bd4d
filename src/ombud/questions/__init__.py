"""The questions ombud answers, one folder each: preset, metrics, analyses, section and figures.

Every folder in here registers what it has when it is imported, exactly as a plugin does; a new
question is a new folder.
"""
