"""The cases run inside the lab machine only; on any other machine they are not even collected."""

import os

collect_ignore_glob = [] if os.environ.get("TKPERF_LAB") else ["cases/*"]
