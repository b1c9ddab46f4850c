# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 2: children that get a fresh environment are tracked all the same, or named as untracked.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
blocks=$PROGRAMS/blocks

# seen TEXT COMMAND...: 1000 blocks of 12345 bytes are in the artifact.
seen()
{
	seen_text=$1
	shift
	tracked "$seen_text" "$@"
	tap_equal "$seen_text: every block is there" 1000 "$(count_size run 12345)"
}

seen "env -i" env -i "$blocks" 1000 12345
seen "a spawned child with two variables" "$PROGRAMS/starter" spawn 0 1 "$blocks" 1000 12345
seen "exec with two variables" "$PROGRAMS/starter" bare 0 1 "$blocks" 1000 12345
seen "exec with no environment at all" "$PROGRAMS/starter" null 0 1 "$blocks" 1000 12345
seen "a shell that unsets LD_PRELOAD" sh -c 'unset LD_PRELOAD; "$1" 1000 12345' sh "$blocks"
seen "python3 subprocess with its own env" "$PYTHON" -c 'import subprocess, sys
subprocess.run(sys.argv[1:], env={"A": "b"}, check=True)' "$blocks" 1000 12345

env -i "$blocks" 1 1
tracked "what the program sees of it" env -i A=b env
tap_equal "the environment is as given but for what brings us back" "A=b" \
	"$(grep -v -e '^LD_PRELOAD=' -e '^MEMTRACK_' "$WORK/out")"

TRACK_OPTIONS=--no-follow-env
tracked "with --no-follow-env" env -i "$blocks" 1000 12345
tap_equal "with --no-follow-env: the child is left alone" 0 "$(count_size run 12345)"
"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
tap_check "with --no-follow-env: stat names the untracked image" grep -q "blocks" "$WORK/stat"
tap_done
