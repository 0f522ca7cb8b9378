"""The cases run inside the lab machine only. They are not even collected on any other machine."""

import os

collect_ignore_glob = [] if os.environ.get("TKPERF_LAB") else ["cases/*"]
