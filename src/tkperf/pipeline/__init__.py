"""A run from a request to its results, for the command line and for Python.

    request -> plan -> consent -> permit -> equipment -> execute -> results

| module | step |
|---|---|
| ``request.py`` | the request; refuses what no device can do |
| ``run_plan.py`` | looks at everything, changes nothing, and finds what is wrong |
| ``fitting.py``, ``alterations.py`` | the profile on this device; the numbers that the options change |
| ``drive.py``, ``segments.py``, ``raid.py``, ``simulation.py`` | the subjects of a run: ``subject.py`` |
| ``consent.py`` | the one rule by which data may be destroyed, and the permit it yields |
| ``equipment.py`` | the engine and the target of a run, while permits are held |
| ``keeping.py``, ``run_info.py`` | executes, and keeps everything in the run file |
| ``api.py`` | all steps in one call |
"""
