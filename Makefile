# One command for each habit. On a machine without make, the scripts do the same.
.PHONY: help setup demo install uninstall wheel archive deb try-deb docs test test-pythons lab lab-full release-check lint format bench

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

setup: ## install what tkperf needs (apt for packages, the rest into .venv)
	@sh scripts/setup.sh

demo: ## the four basic tests on a scratch file, with its report: about three minutes
	@sh scripts/demo.sh

PREFIX ?= /usr/local
EXTRAS ?= report serve
export PREFIX DESTDIR PYTHON EXTRAS

install: ## sudo make install: tkperf for all users of this machine, below PREFIX (/usr/local)
	@sh scripts/install.sh install

uninstall: ## take away what make install made, and nothing else
	@sh scripts/install.sh uninstall

wheel: ## dist/*.whl, for uv tool install and pipx install, and the sdist of which it is built
	@sh scripts/wheel.sh

archive: ## dist/*.tar.gz: tkperf with its own Python, for machines without network
	@sh scripts/archive.sh

deb: ## dist/*.deb: a package for this release of Debian or Ubuntu
	@sh scripts/deb.sh

try-deb: ## sudo make try-deb SUITE=trixie: every artefact in a clean Debian (half an hour)
	@sh scripts/try-deb.sh $(SUITE)

docs: ## the pages of docs/ as a site, with a reference of the Python API: dist/site
	@sh scripts/docs.sh

test: ## install what the tests need; lint and all tests
	@sh scripts/test.sh

test-pythons: ## tests on each supported Python, with the oldest and the newest packages
	@sh scripts/test-pythons.sh

lab: ## the core cases on real kernel drivers in a virtual machine (part of make test)
	@sh scripts/lab.sh core

lab-full: ## all of them
	@sh scripts/lab.sh full

release-check: ## the check list of a release: tag, all tests, the lab, artefacts, their sums; hours
	@sh scripts/release-check.sh

lint: ## format check, ruff, layers, types
	@sh scripts/setup.sh test
	@sh scripts/lint.sh

format: ## put the code into its format
	@sh scripts/setup.sh test
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

bench: ## measure the figures of docs/explanation/accuracy.md
	@sh scripts/setup.sh test
	@.venv/bin/python bench/handover_gap.py
	@.venv/bin/python bench/run_file_size.py
	@.venv/bin/python bench/report_time.py
	@.venv/bin/python bench/start_up.py
