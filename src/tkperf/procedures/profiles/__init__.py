"""Profiles: the numbers of a specification as named data, with their meaning. This package also applies the user's
options and computes the ranges of a profile on a device.

A profile is a TOML file. ``procedures/read_profiles.py`` reads profiles. The folder of this package contains the
profiles that tkperf ships, and users can write other profiles.
"""

from tkperf.procedures.profiles.options_and_ranges import (
    apply_options,
    resolve_active_range,
    resolve_range,
    with_range_to_fill,
)
from tkperf.procedures.profiles.profile_tables import KeyExplained, Profile, explain_keys, show_value

__all__ = [
    "KeyExplained",
    "Profile",
    "apply_options",
    "explain_keys",
    "resolve_active_range",
    "resolve_range",
    "show_value",
    "with_range_to_fill",
]
