# SPDX-License-Identifier: MIT OR Apache-2.0
# What the tests of memtrack share: artifacts from scripts, and what a command gives for them.
# Sourced by them, after which they stand in a folder of their own.
. "$MT_SRCDIR/tests/e2e/lib.sh"
test -n "$MEMTRACK" || tap_skip_all "memtrack was not built"
GOLDEN=$MT_SRCDIR/tests/golden
SCRIPTS=$MT_SRCDIR/tests/e2e/tool
cd "$WORK" || exit 1

# make_artifact NAME: from the script of that name.
make_artifact()
{
	"$MT_BUILDDIR/tests/e2e/mkartifact" "$1" <"$SCRIPTS/$1.script" || exit 1
}

# gives TEXT STATUS COMMAND...: runs it into the files out and err; ok when it ends with the status.
gives()
{
	gives_text=$1
	gives_status=$2
	shift 2
	bounded 60 "$@" >out 2>err </dev/null
	tap_equal "$gives_text" "$gives_status" $?
}

# same_text NAME WANTED GOT: the files are the same.
same_text()
{
	if diff -u "$2" "$3" >difference; then
		tap_ok "$1"
	else
		tap_fail "$1" difference
	fi
}
