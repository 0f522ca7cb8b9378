"""RAID sets: their configuration, the programs that make them, and sets as targets."""
