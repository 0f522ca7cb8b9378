"""A run from a request to its results, for the command line and for Python alike.

    request -> plan -> consent -> permit -> equipment -> execute -> results

| module | step |
|---|---|
| ``request.py`` | what is asked for; what no device could do is refused |
| ``run_plan.py`` | looks at everything, changes nothing, and finds what is wrong |
| ``fitting.py``, ``alterations.py`` | the profile on this device; what the options change of it |
| ``drive.py``, ``segments.py``, ``raid.py``, ``simulation.py`` | what a run can be made on: ``subject.py`` |
| ``consent.py`` | the one rule by which data may be destroyed, and the permit it yields |
| ``equipment.py`` | what a run is made with, while permits are held |
| ``keeping.py``, ``run_info.py`` | executes, and keeps everything in the run file |
| ``api.py`` | all of it in one call |
"""
