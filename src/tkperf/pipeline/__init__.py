"""A run from the request to its results, for the command line and for Python.

    request -> plan -> consent -> permit -> equipment -> execute -> results

| module | step |
|---|---|
| ``run_request.py`` | the request; refuses what no device can do |
| ``run_plan.py`` | looks at everything, changes nothing, and finds what is wrong |
| ``estimate_run.py`` | the time and the bytes that the run will take |
| ``fitted_profile.py`` | the profile on this device |
| ``device_under_test.py`` | the device under test, and its equipment while permits are held |
| ``drive.py``, ``raid.py``, ``simulation.py`` | the kinds of devices under test |
| ``consent.py`` | the one rule by which data may be destroyed, and the permit that it yields |
| ``host_check.py`` | the host: audited, refused or tuned |
| ``run_disclosure.py`` | what every result discloses; what the options change |
| ``run_to_file.py`` | executes the run, and stores everything in the run file |
| ``resume_plan.py`` | the plan of a resumed run; the differences between then and now |
| ``running_runs.py``, ``run_state.py`` | runs of other processes, by their files; a run by its events |
| ``api.py`` | all steps in one call |
"""
