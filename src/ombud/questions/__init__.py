"""The questions ombud answers, one folder or file each: preset, metrics, analyses and report.

Everything in here registers what it has when it is imported, exactly as a plugin does; a new
question is a new folder or file.
"""
