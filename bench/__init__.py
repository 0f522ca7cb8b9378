"""Scripts that measure what the README claims; each runs by itself."""
