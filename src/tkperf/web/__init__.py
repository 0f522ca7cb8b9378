"""``tkperf serve``: run files in a browser. The server only reads them. It measures nothing and changes nothing.

Each page module has a function ``build_routes(state)``, and ``application.py`` joins their routes. Only workers
(``workers.py``, ``jobs.py``), which may die, read the content of run files. Only the command ``serve`` loads this
package.
"""
