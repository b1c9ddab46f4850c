# SPDX-License-Identifier: MIT OR Apache-2.0
# TAP for shell tests. Sourced by them; prints only TAP on stdout.
# A test calls tap_check, tap_ok, tap_fail or tap_skip once a case and ends with tap_done.

: "${MT_SRCDIR:?run me through make check, or set MT_SRCDIR to the source folder}"
: "${MT_BUILDDIR:?run me through make check, or set MT_BUILDDIR to the build folder}"

tap_count=0
tap_failed=0

tap_ok()
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1"
}

# tap_fail NAME [FILE...]: the files' content says why.
tap_fail()
{
	tap_count=$((tap_count + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_count - $1"
	shift
	for tap_file; do
		test ! -s "$tap_file" || tail -n 40 "$tap_file" | sed 's/^/# /'
	done
}

tap_skip()
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

tap_skip_all()
{
	echo "1..0 # SKIP $1"
	exit 0
}

# tap_verdict NAME RESULT [FILE...]: ok when RESULT is 0.
tap_verdict()
{
	tap_name=$1
	tap_result=$2
	shift 2
	if test "$tap_result" -eq 0; then
		tap_ok "$tap_name"
	else
		tap_fail "$tap_name" "$@"
	fi
}

# tap_check NAME COMMAND...: ok when the command succeeds; else shows what it printed.
tap_check()
{
	tap_name=$1
	shift
	if tap_out=$("$@" 2>&1); then
		tap_ok "$tap_name"
	else
		tap_fail "$tap_name"
		echo "$tap_out" | tail -n 40 | sed 's/^/# /'
	fi
}

# tap_equal NAME WANTED GOT
tap_equal()
{
	if test "$2" = "$3"; then
		tap_ok "$1"
	else
		tap_fail "$1"
		echo "# wanted: $2" | sed '2,$s/^/#   /'
		echo "# got:    $3" | sed '2,$s/^/#   /'
	fi
}

tap_done()
{
	echo "1..$tap_count"
	test "$tap_failed" -eq 0
	exit
}
