# SPDX-License-Identifier: MIT OR Apache-2.0
# The entries of `make check-mutants` do not rot: each changes its file, and its test is there.
. "$MT_SRCDIR/tests/lint/lib.sh"
command -v python3 >/dev/null || tap_skip_all "python3 is not installed"
exec python3 "$MT_SRCDIR/tests/mutants/run.py" --lint "$MT_SRCDIR"
