"""Build texts about results. All outputs use the same words."""
