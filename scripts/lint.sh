#!/bin/sh
# Checks format, lint, layers and types. Prints nothing if all checks pass.
set -eu
cd "$(dirname "$0")/.."
.venv/bin/ruff format --check --quiet .
.venv/bin/ruff check --quiet .
layers=$(.venv/bin/lint-imports 2>&1) || { printf '%s\n' "$layers"; exit 1; }
.venv/bin/mypy --no-error-summary
