"""The propagation model: how the balance of profiles shows in lists.

Needs numpy and scipy alone; draws can be handed to ArviZ (extra ``bayes``).
"""
