"""RAID sets: what they are made of, who makes them, and how they are measured."""
