# SPDX-License-Identifier: MIT OR Apache-2.0
# Can the tests fail? Small defects, each of which has to turn its test red (tests/mutants/run.py says
# how they are written). MUTANTS='kind37' takes those of one test; all take an hour on two processors
# with MUTANTS_JOBS=2, and can be had in pieces with MUTANTS_LOG and MUTANTS_SECONDS.
MUTANTS =
EXTRA_DIST += tests/mutants/run.py tests/mutants/kinds_01_20.mutants \
	tests/mutants/kernel.mutants tests/mutants/order_run_count.mutants tests/mutants/late.mutants \
	tests/mutants/tools.mutants
.PHONY: check-mutants mutants-build
check-mutants:
	MUTANTS='$(MUTANTS)' python3 $(top_srcdir)/tests/mutants/run.py $(top_srcdir) . mutants
# What the end-to-end tests need, run by run.py in its copy; unit tests are built when they are run.
mutants-build:
	$(MAKE) $(AM_MAKEFLAGS) all
	$(MAKE) $(AM_MAKEFLAGS) $(check_LTLIBRARIES) $(filter tests/e2e/%,$(check_PROGRAMS))
clean-local:
	rm -rf mutants mutants.lock
