"""The propagation model: how the balance of profiles shows in lists.

Needs numpy and scipy alone.
"""
