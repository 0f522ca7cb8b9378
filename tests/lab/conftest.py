"""The cases run only inside the lab machine. On any other machine, pytest does not collect them."""

import os

collect_ignore_glob = [] if os.environ.get("TKPERF_LAB") else ["cases/*"]
