"""Warnings: do recommenders show more sensitive content than people's own histories hold?"""
