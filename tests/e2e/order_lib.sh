# SPDX-License-Identifier: MIT OR Apache-2.0
# What the tests of the order share: storms under an allocator, judged against the truth. Sourced.
# Each storm prints a row of a table, as a comment of the TAP:
#
#   allocator options-of-exchange mode events contradictions lost out-of-place late
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
ulimit -c 0

LIBS=$PROGRAMS/.libs
JUDGE=$PROGRAMS/order_judge
order_events=0

# allocator_preload NAME: what is preloaded behind ours, into PRELOADED; 1 when it is not installed.
# The bare kinds hand blocks from thread to thread as fast as they can: no caches, one arena.
allocator_preload()
{
	PRELOADED=$LIBS/libstrip.so
	ALLOCATOR_ENV=MT_NOTHING=
	case $1 in
	glibc) return ;;
	glibc-bare) ALLOCATOR_ENV=GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1 && return ;;
	torture) PRELOADED=$LIBS/libtorture.so && return ;;
	jemalloc-bare) ALLOCATOR_ENV=MALLOC_CONF=tcache:false,narenas:1 ;;
	tcmalloc-bare) ALLOCATOR_ENV=TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=0 ;;
	esac
	case ${1%-bare} in
	jemalloc) allocator_file=libjemalloc.so.2 ;;
	mimalloc) allocator_file="libmimalloc.so.[23]" ;;
	tcmalloc) allocator_file=libtcmalloc_minimal.so.4 ;;
	esac
	allocator_path=$(find_library "$allocator_file")
	test -n "$allocator_path" && PRELOADED=$PRELOADED:$allocator_path
}

# run_storm ALLOCATOR ARGUMENT-OF-EXCHANGE...: tracks it into $WORK/run and judges that. The shell in
# between is the root image, which has another allocator. Sets JUDGED, the judge's line.
run_storm()
{
	allocator_preload "$1" || return 9
	shift
	rm -f "$WORK/truth"
	JUDGED=
	track run env "$ALLOCATOR_ENV" sh -c 'LD_PRELOAD=$LD_PRELOAD:$1
		MT_TRUTH=$2
		export LD_PRELOAD MT_TRUTH
		shift 2
		exec "$@"' sh "$PRELOADED" "$WORK/truth" "$PROGRAMS/exchange" "$@" \
		</dev/null >"$WORK/out" 2>"$WORK/err" || return 1
	JUDGED=$("$JUDGE" "$WORK/run" "$WORK/truth" 2>>"$WORK/err") || return 2
	order_events=$((order_events + $(judged events)))
}

# judged NAME: a number of the judge's line.
judged()
{
	judged_rest=${JUDGED#*" $1="}
	test "$judged_rest" != "$JUDGED" || judged_rest=${JUDGED#"$1="}
	echo "${judged_rest%% *}"
}

# order_row ALLOCATOR ARGUMENT...
order_row()
{
	order_name=$1
	shift
	printf '# %-13s %-27s %-30s events %9s contradictions %s lost %s out of place %s late %s' \
		"$order_name" "$*" "${TRACK_OPTIONS:-fast}" "$(judged events)" "$(judged contradictions)" \
		"$(judged lost)" "$(judged out_of_place)" "$(judged late)"
	echo " (handed over $(judged handed), parked $(judged parked), split $(judged split), inherited $(judged inherited)," \
		"swapped frees $(judged swapped_frees))"
}

# is_zero NAME...: are these of the judge's numbers 0?
is_zero()
{
	for zero_name; do
		test "$(judged "$zero_name")" -eq 0 || return 1
	done
}

# is_placed ALLOCATOR: are the allocations in their true order? Plain stamps do not promise it of the
# bare kinds, which hand blocks on nearly as fast as a stamp can be early: two in a storm may trade
# places. (Seen once in 190 million events.) With ANY_PLACE=1 only the row tells.
is_placed()
{
	case ${ANY_PLACE:+any}:$1:${TRACK_OPTIONS:-} in
	any:*) ;;
	*--order=strict*) is_zero out_of_place ;;
	:*-bare:*) test "$(judged out_of_place)" -le 2 ;;
	*) is_zero out_of_place ;;
	esac
}

# storm ALLOCATOR ARGUMENT...: one case, and a row. Right: nothing lost or invented, no contradiction,
# all allocations in their true order.
storm()
{
	run_storm "$@"
	case $? in
	0) ;;
	9) tap_skip "$*" "not installed" && return ;;
	*) tap_fail "$* ${TRACK_OPTIONS:-}: it runs and can be judged" "$WORK/err" && return ;;
	esac
	order_row "$@"
	if is_placed "$1" && is_zero contradictions flagged lost missing invented missing_frees &&
		"$MEMTRACK" verify "$WORK/run" >"$WORK/verify" 2>&1; then
		tap_ok "$* ${TRACK_OPTIONS:-}: all there, in order"
	else
		echo "$JUDGED" >"$WORK/judged"
		tap_fail "$* ${TRACK_OPTIONS:-}: all there, in order" "$WORK/judged" "$WORK/verify" "$WORK/err"
	fi
}

# storm_of_wrongs ARGUMENT...: under libtorture, with wrong frees. Each is flagged, nothing else is, and
# no allocation is out of place.
storm_of_wrongs()
{
	run_storm torture "$@" || {
		tap_fail "$* ${TRACK_OPTIONS:-}: it runs and can be judged" "$WORK/err"
		return
	}
	order_row torture "$@"
	echo "$JUDGED" >"$WORK/judged"
	wrong=$(judged wrong_frees)
	test "$wrong" -gt 0 && test "$(judged flagged)" -eq "$wrong" && test "$(judged contradictions)" -eq "$wrong"
	tap_verdict "$* ${TRACK_OPTIONS:-}: $wrong wrong frees, each flagged, nothing else" $? "$WORK/judged"
	is_placed torture && is_zero lost missing invented missing_frees
	tap_verdict "$* ${TRACK_OPTIONS:-}: they disturb nothing" $? "$WORK/judged"
}

# storm_of_losses ALLOCATOR ARGUMENT...: with --on-full=drop and buffers that are too small. What is not
# there was counted, record by record, and what contradicts itself for that was flagged. Among the lost
# may be a few of libc's own, made when threads end.
storm_of_losses()
{
	run_storm "$@" || {
		tap_fail "$* ${TRACK_OPTIONS:-}: it runs and can be judged" "$WORK/err"
		return
	}
	order_row "$@"
	echo "$JUDGED" >"$WORK/judged"
	others=$(($(judged lost) - $(judged missing) - $(judged missing_frees)))
	test "$others" -ge 0 && test "$others" -le 64 && is_zero invented
	tap_verdict "$* ${TRACK_OPTIONS:-}: recorded + lost = done ($(judged lost) lost, $others of libc)" $? "$WORK/judged"
	tap_equal "$* ${TRACK_OPTIONS:-}: what contradicts itself was flagged" \
		"$(judged contradictions)" "$(judged flagged)"
}

order_done()
{
	echo "# $order_events events in all"
	tap_done
}
