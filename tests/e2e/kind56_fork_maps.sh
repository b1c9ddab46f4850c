# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 56: a forked child has its parent's mappings as they were at the fork, by the Fork event, and
# its own from there on; every process has its edge, whoever tells of processes, also in manual use,
# and also where a process in between never records.
. "$MT_SRCDIR/tests/e2e/lib.sh"
. "$MT_SRCDIR/tests/e2e/places_lib.sh"
places=$PROGRAMS/places
shim=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
make_part first
make_part other
make_part late

# Children, grandchildren and theirs, by fork() and by the system call: each loads for itself.
set -- "$places" open "$WORK/libfirst.so" fork where open "$WORK/libother.so" rawfork where close \
	open "$WORK/liblate.so" fork where
blocks=$((1000 + 2 * 1 + 2 * 1000 + 4 * 2 + 4 * 1000 + 8 * 2))
lines=$((1 + 2 * 4 + 2 + 4 * 5 + 4 + 8 * 5))

# edges NAME: processes that said something; those without an event; forks; forks from nowhere.
edges()
{
	"$MEMTRACK" dump "$WORK/$1" | "$PYTHON" -c 'import json, sys
there, forks, orphans = set(), 0, 0
for event in map(json.loads, sys.stdin):
    if event["type"] == "Fork":
        forks += 1
        orphans += event["parent_pid"] not in there
    there.add(event["pid"])
said = {int(line.split(" ")[0]) for line in open(sys.argv[1])}
print(len(said), len(said - there), forks, orphans)' "$WORK/out"
}

# family TEXT NAME: all that was said is in the artifact.
family()
{
	tap_equal "$1: an edge for every process but the first" "8 0 7 0" "$(edges "$2")"
	tap_equal "$1: every block that was taken through a library" "$blocks" "$(count_size "$2" 4321)"
	# Where nobody tells of mappings, what was there at the start is known, and that it is all; a
	# Fork may come later than the child's first words.
	PLACES_OPTIONS=--code
	if "$MEMTRACK" stat "$WORK/$2" | grep -q 'later mappings not recorded'; then
		PLACES_OPTIONS="--code --late-forks"
		cp "$WORK/out" "$WORK/whole"
		grep -v '/lib\(first\|other\|late\)\.so$' "$WORK/whole" >"$WORK/out"
	fi
	right "$1" "$2" "$(wc -l <"$WORK/out")"
}

for bpf in auto basic off; do
	TRACK_OPTIONS=--bpf=$bpf
	tracked "bpf $bpf" "$@"
	tap_equal "bpf $bpf: the program said all it should" "$lines" "$(wc -l <"$WORK/out")"
	family "bpf $bpf" run
	rm -f "$WORK/manual"
	bounded 60 env MEMTRACK_BPF=$bpf MEMTRACK_OUTPUT="$WORK/manual" LD_PRELOAD="$shim" "$@" \
		>"$WORK/out" 2>"$WORK/err"
	tap_verdict "manual use, bpf $bpf: ends well" $? "$WORK/err"
	tap_check "manual use, bpf $bpf: the file is finished" bounded 20 "$MEMTRACK" stat --wait "$WORK/manual"
	family "manual use, bpf $bpf" manual
done

# Who waits for whom is a matter of moments.
TRACK_OPTIONS=--bpf=off
wrong=0
round=0
while test $round -lt "$(long 10 200)"; do
	track run "$@" </dev/null >"$WORK/out" 2>"$WORK/err"
	"$MEMTRACK" verify "$WORK/run" >"$WORK/said" 2>&1 || wrong=$((wrong + 1))
	round=$((round + 1))
done
tap_equal "bpf off, $round times: verify is clean" 0 $wrong

# Nothing is recorded of the process in between: its edge is there all the same.
if $cc -static -o "$WORK/between" -x c - 2>/dev/null <<'END'
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		return execv(argv[1], argv + 1), 1;
	return argc < 2 || waitpid(pid, &status, 0) != pid || status;
}
END
then
	for bpf in auto basic; do
		TRACK_OPTIONS=--bpf=$bpf
		tracked "a static process in between, bpf $bpf" sh -c '"$@"; exit' sh "$WORK/between" "$@"
		tap_equal "a static process in between, bpf $bpf: an edge for every process" "8 0 9 0" "$(edges run)"
		right "a static process in between, bpf $bpf" run "$lines"
	done
else
	tap_skip "a static process in between" "no static libc to link with"
fi
tap_done
