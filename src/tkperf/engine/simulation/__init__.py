"""Models of drives in virtual time. docs/explanation/simulated-drive.md lists the presets, ADR 49 the equations.

The models know no engine and no clock. ``engine/simulated.py`` gives them the interface of an engine.
"""
