"""Entry point of ``python -m tkperf``."""

from tkperf.cli.main import main

if __name__ == "__main__":
    main()
