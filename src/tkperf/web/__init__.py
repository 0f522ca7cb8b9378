"""``tkperf serve``: run files in a browser. It reads them, measures nothing, and changes nothing.

A page module has ``build_routes(state)``, which ``application.py`` joins. Content of run files is read only by workers
(``workers.py``, ``jobs.py``), which can die. The command ``serve`` alone loads this room.
"""
