"""Systems of which only the answers are known."""
