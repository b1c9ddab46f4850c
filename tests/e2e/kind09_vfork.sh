# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 9: vfork and posix_spawn children share their parent's memory: what they take is the
# parent's, and its stream stays usable. From one thread, and by system() and popen().
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
rounds=$(long 200 1000)
counted "vfork children" "$PROGRAMS/vforker" "$rounds"
dump counted >"$WORK/all"
tap_equal "their blocks are the parent's" "$((rounds * 10)) 1" \
	"$(sed -n 's/^{"pid":\([0-9]*\),.*"type":"Malloc","size":3000[,}].*/\1/p' "$WORK/all" | sort | uniq -c |
		awk '{ n += $1 } END { print n, NR }')"
tap_equal "the parent records on" "$rounds" "$(grep -c '"type":"Malloc","size":3001[,}]' "$WORK/all")"
tap_equal "after spawns that failed as well" 20 "$(grep -c '"type":"Malloc","size":3002[,}]' "$WORK/all")"
tap_equal "and beside children of eight threads, with file actions that work and that fail" 160 \
	"$(grep -c '"type":"Malloc","size":3003[,}]' "$WORK/all")"
tap_done
