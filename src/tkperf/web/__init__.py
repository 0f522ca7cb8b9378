"""``tkperf serve``: show run files in a browser. The server only reads the files. It measures nothing and changes
nothing.

Each page module has a function ``build_routes(state)``, and ``application.py`` joins their routes. Only workers
(``workers.py``, ``jobs.py``) read the content of run files. A worker may end unexpectedly without harm to the server.
Only the command ``serve`` loads this package.
"""
