"""Settings of the host for a measurement: what would be set, set and verified, and put back.

Only what is safe and reversible: the governor and energy preference of the CPUs, and the queue of the
drives that are measured. No service is stopped, no other drive touched.

| module | what it does |
|---|---|
| ``settings.py`` | which settings there are, and which values measuring wants; reads only |
| ``state.py`` | the file that says what was before: written before anything is changed |
| ``applying.py`` | sets, verifies, puts back |
"""
