"""A run from the request to its results, for the command line and for Python.

    request -> plan -> consent -> permit -> equipment -> execute -> results

| module | step |
|---|---|
| ``run_request.py`` | contains the request, and refuses values that are impossible on any device |
| ``run_plan.py`` | examines the device and the host, changes nothing, and finds all faults |
| ``estimate_run.py`` | estimates the time of the run and the bytes that it writes |
| ``fitted_profile.py`` | fits the profile to the device |
| ``device_under_test.py`` | opens the device under test as equipment, while permits are held |
| ``drive.py``, ``raid.py``, ``simulation.py`` | implement the kinds of devices under test |
| ``consent.py`` | contains the only rule that decides when data may be destroyed, and returns the permit |
| ``host_check.py`` | audits, refuses or tunes the host |
| ``run_disclosure.py`` | collects the facts that every result discloses, and the changes that the options cause |
| ``run_to_file.py`` | executes the run, and stores all its data in the run file |
| ``resume_plan.py`` | plans a resumed run, and finds the differences since the interruption |
| ``running_runs.py`` | follows runs of other processes in their run files |
| ``run_state.py`` | builds the state of a run from its events |
| ``api.py`` | executes all steps in one call |
"""
