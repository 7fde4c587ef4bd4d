"""The bootstrap: joint resampling of units or clusters, and intervals from the draws."""
