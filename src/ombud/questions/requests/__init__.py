"""Requests: after people asked not to see something, is it still shown to them?"""
