"""Amplification@k and everything it is made of."""
