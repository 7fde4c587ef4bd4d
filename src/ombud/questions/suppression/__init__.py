"""Suppression: whose acceptable speech is flagged, and how much more than everyone's."""
