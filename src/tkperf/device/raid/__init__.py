"""RAID sets: their configuration, the programs that create them, and RAID sets as targets of a run."""
