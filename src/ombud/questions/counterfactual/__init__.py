"""Counterfactual: what people could be shown if they, or other people's data, were different."""
