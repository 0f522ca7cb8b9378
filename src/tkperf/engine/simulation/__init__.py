"""Models of drives in virtual time. docs/explanation/simulated-drive.md lists the presets, and ADR 49 contains the
equations.

The models depend neither on an engine nor on a clock. ``engine/simulated.py`` wraps a model in the interface of an
engine.
"""
