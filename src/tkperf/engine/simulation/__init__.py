"""Models of drives, in virtual time: equations and presets in docs/simulated-drive.md.

Pure: no engine, no clock. ``engine/simulated.py`` puts them behind the engines' seam.
"""
