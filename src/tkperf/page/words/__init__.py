"""Describe results in words. All outputs use the same words."""
