"""The command line offers the names of tests, profiles and purge methods without loading these objects. The offered
names agree with the names of the objects.
"""

from __future__ import annotations

from tkperf.device.purge import ata, nvme, scsi
from tkperf.engine.registry import ENGINES
from tkperf.engine.simulation.models import PRESET_MODELS
from tkperf.model import choices
from tkperf.procedures import SUITES, TESTS, load_profile


def test_the_tests_offered_are_those_that_there_are() -> None:
    """The command line offers the existing tests in order, for the same suites and with the same defaults."""
    assert [(each.name, each.suites, each.by_default) for each in choices.OFFERED_TESTS] == [
        (test.name, test.suites, test.by_default) for test in TESTS
    ]
    for suite, tests in SUITES.items():
        assert list(choices.tests_of(suite)) == list(tests)


def test_the_presets_are_those_that_there_are() -> None:
    assert tuple(PRESET_MODELS) == choices.PRESETS


def test_the_io_engines_offered_are_those_of_the_engines() -> None:
    """``--engine`` accepts the I/O interfaces of all registered engines, and no two engines have the same interface."""
    assert tuple(name for engine in ENGINES.values() for name in engine.ioengines) == choices.IO_ENGINES
    assert len(set(choices.IO_ENGINES)) == len(choices.IO_ENGINES)


def test_every_shipped_profile_is_found_and_can_be_loaded() -> None:
    """Every shipped profile can be loaded under the name of its file. The default profiles of all suites are
    shipped.
    """
    names = choices.built_in_profiles()
    assert [load_profile(name).name for name in names] == list(names)
    assert names == tuple(sorted(names))
    assert set(choices.DEFAULT_PROFILES.values()) <= set(names)
    assert set(choices.DEFAULT_PROFILES) == set(SUITES)


def test_the_profiles_offered_for_hard_disks_are_those_that_define_their_tests() -> None:
    """For hard disks, the command line offers exactly the profiles that define hard disk tests. It refuses all other
    profiles.
    """
    defining = [
        name
        for name in choices.built_in_profiles()
        if any(test.is_in(load_profile(name)) for test in SUITES["hdd"].values())
    ]
    assert list(choices.HDD_PROFILES) == defining


def test_a_purge_by_its_name_belongs_to_one_bus() -> None:
    """The name of each purge method belongs to exactly one bus. The list of names for a bus contains the methods that
    the modules for this bus define.
    """
    assert len(set(choices.PURGES)) == len(choices.PURGES)
    assert set(nvme.SANITIZE_ACTIONS) <= set(choices.NVME_PURGES)
    assert set(scsi.SCSI_SANITIZES) <= set(choices.SCSI_PURGES)
    assert set(ata.ATA_SANITIZES) <= set(choices.ATA_PURGES)
