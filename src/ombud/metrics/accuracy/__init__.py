"""How well systems predict what was held out, and how much of the catalogue they show."""
