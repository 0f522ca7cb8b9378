"""Models of drives, in virtual time: presets in docs/explanation/simulated-drive.md, equations in ADR 49.

Pure: no engine, no clock. ``engine/simulated.py`` puts them behind the engines' seam.
"""
