# SPDX-License-Identifier: MIT OR Apache-2.0
# The preloaded library against a small peer in place of the sidecar: what it records, what it counts
# as lost, whom it follows, and that it stays out of the way when nobody is there.
. "$MT_SRCDIR/tests/e2e/lib.sh"
library=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
peer=$PROGRAMS/shim_peer
test -f "$library" && test -x "$peer" || tap_skip_all "the preloaded library was not built"

# peer OPTIONS -- COMMAND...
peer()
{
	bounded 60 "$peer" -l "$library" -o "$WORK/read" "$@" >"$WORK/out" 2>"$WORK/err"
}

records()
{
	grep -c '^rec ' "$WORK/read"
}

# lost [CAUSE]
lost()
{
	awk -v cause="${1:-}" '$1 == "lost" && (cause == "" || $3 == cause) { sum += $4 } END { print sum + 0 }' \
		"$WORK/read"
}

# of_size SIZE: how many blocks of that size, for each image.
of_size()
{
	awk -v size="$1" '$1 == "rec" && $5 == "malloc" && $7 == size { split($2, at, "."); n[at[1]]++ }
		END { for (i = 0; i < 9; i++) if (n[i]) printf "%s%d:%d", (k++ ? " " : ""), i, n[i]; print "" }' \
		"$WORK/read"
}

newest=$(nm -D "$library" | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -n 1)
tap_equal "nothing newer than glibc 2.17" 2.17 "$(printf '%s\n2.17\n' "$newest" | sort -V | tail -n 1)"

peer -- "$PROGRAMS/blocks" 1000 12345
tap_equal "records every block" 0:1000 "$(of_size 12345)"
all=$(records)
peer -p -q -b 64 -- "$PROGRAMS/blocks" 20000 12345
got=$(($(records) + $(lost 0)))
peer -- "$PROGRAMS/blocks" 20000 12345
tap_equal "policy drop: recorded + lost = done" "$(records)" "$got"
tap_check "and something was lost" test "$got" -gt "$((all + 1000))"

start=$(date +%s)
peer -q -w 300 -b 64 -- "$PROGRAMS/blocks" 20000 12345
status=$?
tap_equal "stopped reader: the program ends by itself" 0 "$status"
tap_check "and does not wait for each block" test "$(($(date +%s) - start))" -lt 30
tap_equal "and what is lost is counted" "$got" "$(($(records) + $(lost 1)))"

for how in exec thread null bare posix_spawn posix_spawnp vfork execvpe fexecve execveat fails; do
	peer -- "$PROGRAMS/starter" "$how" 5 12345 "$PROGRAMS/blocks" 7 12345
	own=5
	test "$how" != fails || own=10
	tap_equal "follows $how" "0:$own 1:7" "$(of_size 12345)"
done
peer -- env -i "$PROGRAMS/blocks" 7 12345
tap_equal "follows env -i" 1:7 "$(of_size 12345)"
peer -- sh -c "unset LD_PRELOAD MEMTRACK_SESSION; '$PROGRAMS/blocks' 7 12345"
tap_equal "follows a shell that unset us" 1:7 "$(of_size 12345)"
peer -- env -i MEMTRACK_FOLLOW=0 "$PROGRAMS/blocks" 7 12345
tap_equal "MEMTRACK_FOLLOW=0 is obeyed" "" "$(of_size 12345)"
peer -- env -i MEMTRACK_FOLLOW=Off "$PROGRAMS/blocks" 7 12345
tap_equal "MEMTRACK_FOLLOW=Off too" "" "$(of_size 12345)"
peer -n -- env -i "$PROGRAMS/blocks" 7 12345
tap_equal "a session that does not follow is obeyed" "" "$(of_size 12345)"

if echo 'int main(void) { return 7; }' >"$WORK/a.c" && gcc -fsanitize=address -o "$WORK/a" "$WORK/a.c" 2>/dev/null; then
	peer -- sh -c "'$WORK/a'; exit \$?"
	tap_equal "a sanitized child starts without us" 7 "$?"
else
	tap_skip "a sanitized child starts without us" "gcc has no AddressSanitizer here"
fi

peer -- "$PROGRAMS/sandbox" strict 100
tap_equal "strict sandbox: what is not recorded is counted" 200 "$(lost 3)"
peer -b 64 -- "$PROGRAMS/sandbox" filter 50000
status=$?
tap_equal "filter that kills: survives, and nothing is lost" "0 0" "$status $(lost)"

# Nobody there.
nobody=1:$(printf '%032d' 0):$(printf '%032d' 0):
plain=$(ls -l /proc/self/fd 2>&1 | wc -l)
with=$(MEMTRACK_SESSION=$nobody LD_PRELOAD=$library ls -l /proc/self/fd 2>&1 | wc -l)
tap_equal "no session to meet: the program runs as itself" "$plain" "$with"
tap_equal "and with standard descriptors closed" 3 \
	"$(MEMTRACK_SESSION=$nobody LD_PRELOAD=$library sh -c 'exit 3' <&- >/dev/null 2>&-; echo $?)"
peer -- sh -c 'exec <&- >&- 2>&-; exec "$0" 7 12345' "$PROGRAMS/blocks"
tap_equal "standard descriptors closed before we meet the session" 1:7 "$(of_size 12345)"
peer -- sh -c 'ulimit -v 300000; exec "$0" 7 12345' "$PROGRAMS/blocks"
tap_equal "little address space" 1:7 "$(of_size 12345)"
peer -- sh -c 'ulimit -v 20000; exec "$0" 7 12345' "$PROGRAMS/blocks"
tap_equal "hardly any: the program runs all the same" 0 "$?"
tap_done
