"""A run from a request to its results, for the command line and for Python.

    request -> plan -> consent -> permit -> equipment -> execute -> results

| module | step |
|---|---|
| ``request.py`` | the request; refuses what no device can do |
| ``run_plan.py`` | looks at everything, changes nothing, and finds what is wrong; ``outlook.py`` adds time and bytes |
| ``fitting.py`` | the profile on this device |
| ``subject.py`` | the subject of a run, and its equipment while permits are held: ``drive.py``, ``raid.py``,
``simulation.py`` | | ``consent.py`` | the one rule by which data may be destroyed, and the permit it yields | |
``host_check.py`` | the host: audited, refused or tuned | | ``keeping.py``, ``disclosure.py`` | executes, and keeps
everything in the run file | | ``resume.py``, ``resumption.py`` | the plan of a run that goes on; the differences
between then and now | | ``following.py``, ``run_state.py`` | runs of other processes, by their files; a run by its
events | | ``api.py`` | all steps in one call |
"""
