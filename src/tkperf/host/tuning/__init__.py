"""Settings of the host for a measurement: found, set and verified, and put back.

All of them are safe and reversible: the governor and energy preference of the CPUs, and the queue of the
measured drives. tkperf stops no service and touches no other drive.

| module | task |
|---|---|
| ``settings.py`` | finds the settings, and the values that measuring wants; reads only |
| ``state.py`` | the file with the values before: written before anything is changed |
| ``applying.py`` | sets, verifies, puts back |
"""
