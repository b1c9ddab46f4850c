# SPDX-License-Identifier: MIT OR Apache-2.0
# Process events one by one: nothing is missed, each Exit comes once, flags of images, PID namespaces,
# losses. The sources are forced one after the other.
. "$MT_SRCDIR/tests/e2e/kernel_lib.sh"

actions="$MT_BUILDDIR/tests/e2e/kernel_actions"
out=$work/trace

count() { grep -c "\"type\":\"$1\"" "$out"; }

# want NAME CONDITION...: the condition is a test(1) expression.
want() {
	want_name=$1
	shift
	if [ "$@" ]; then ok "$want_name"; else not_ok "$want_name: $*" "$work/err" "$out"; fi
}

# has NAME PATTERN: a line of the trace matches.
has() {
	if grep -q "$2" "$out"; then ok "$1"; else not_ok "$1: no $2" "$work/err" "$out"; fi
}

has_not() {
	if grep -q "$2" "$out"; then not_ok "$1: $2" "$work/err" "$out"; else ok "$1"; fi
}

# The life of each process begins with its Fork and ends with its Exit. Times are in order, but for
# two records of two drains whose programs ran at the same time.
in_order() {
	awk '
	function field(name,   s) {
		if (!match($0, "\"" name "\":[0-9]+")) return ""
		return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
	}
	/"type":"Report"/ { alive[field("root")] = 1; next }
	/"type":"End"/ { next }
	{ pid = field("pid"); time = field("time") + 0
	  if (time + 1e7 < last) { print "# time goes back: " $0; bad = 1 }
	  last = time }
	/"type":"Fork"/ { if (alive[pid]) { print "# forked while alive: " $0; bad = 1 }; alive[pid] = 1 }
	!alive[pid] { print "# not alive: " $0; bad = 1 }
	/"type":"Exit"/ { alive[pid] = 0 }
	END { exit bad }
	'
}

# Classic tracepoints are found by way of tracefs, which may have to be mounted.
run() {
	if [ "$source" = tracepoint ]; then
		name=$1
		shift
		unshare -m sh -c 'ls /sys/kernel/tracing/events >/dev/null 2>&1 ||
			mount -t tracefs none /sys/kernel/tracing || exit 78
			exec "$@"' - "$trace" --process=tracepoint "$@" >"$out" 2>"$work/err"
		rc=$?
		[ $rc = 0 ] && return 0
		if [ $rc = 78 ] || ! ebpf_must_run; then
			skip "$name" "no tracefs, or not allowed to use it"
		else
			not_ok "$name: the tracer ended with $rc" "$work/err" "$out"
		fi
		return 1
	fi
	run_name=$1
	shift
	run_trace "$run_name" "$out" "$work/err" --process="$source" "$@"
}

for source in tp_btf raw_tp tracepoint perf; do
	if run "$source: 2,000 short processes" -- "$actions" forks 2000; then
		want "$source: 2,000 short processes, each with its end, nothing lost" \
			"$(count Fork) $(count Exit) $(count Lost)" = "2000 2001 0"
	fi
	if run "$source: a storm" -- "$actions" storm 3000; then
		want "$source: 3,000 processes from two, nothing lost" \
			"$(count Fork) $(count Exit) $(count Lost)" = "3001 3002 0"
		in_order <"$out"
		want "$source: in the order of their times" $? = 0
	fi
	if run "$source: threads" -- "$actions" threads 20; then
		want "$source: the end of 21 threads, of one process" \
			"$(count Fork) $(count ThreadExit) $(count Exit)" = "0 21 1"
	fi
	if run "$source: a thread forks" -- "$actions" thread-forks; then
		want "$source: the child of a thread is its process's" \
			"$(sed -n 's/.*"Fork".*"parent_pid":\([0-9]*\).*/\1/p' "$out")" = \
			"$(sed -n 's/.*"Report".*"root":\([0-9]*\).*/\1/p' "$out")"
	fi
	if run "$source: the first thread leaves" -- "$actions" leader-leaves; then
		want "$source: a process ends with its last thread, once" \
			"$(count ThreadExit) $(count Exit) $(tail -n 2 "$out" | grep -c '"Exit"')" = "2 1 1"
	fi
	if run "$source: threads that end together" -- "$actions" thread-races 200; then
		want "$source: 200 processes whose last threads end together end once each" \
			"$(count Fork) $(count Exit)" = "200 201"
	fi
	[ "$source" = perf ] && continue
	if run "$source: statuses" -- sh -c "'$actions' threads 2; '$actions' leader-leaves; '$actions' crash; exit 0"; then
		want "$source: exit statuses as of wait(2)" \
			"$(sed -n 's/.*"Exit".*"status":\([0-9]*\).*/\1/p' "$out" | tr '\n' ' ')" = \
			"768 1280 11 0 "
	fi
	if run "$source: vfork" -- "$actions" vfork; then
		has "$source: a vfork child is flagged" '"Fork".*"flags":\["vfork"\]'
	fi
	if run "$source: posix_spawn" -- "$actions" spawn; then
		has "$source: so is one of posix_spawn" '"Fork".*"flags":\["vfork"\]'
		has "$source: its environment has nothing of ours" '"Exec".*"no_preload".*/true"'
	fi
	if run "$source: fork" -- "$actions" forks 1; then
		has "$source: a fork child is not" '"Fork".*"flags":\[\]'
	fi
	# The sidecar's own environment does not matter, the new one does.
	if run "$source: LD_PRELOAD" -- env LD_PRELOAD=/lib/a.so:/x/libmemtrack-preload.so \
			/bin/true 2>/dev/null; then
		has "$source: an environment that names us is not flagged" \
			'"Exec".*"flags":\["known"[^]]*\],"path":"[^"]*/true"'
		has_not "$source: nor by accident" '"Exec".*"no_preload".*/true"'
	fi
	if run "$source: env -i" -- env -i /bin/true; then
		has "$source: env -i is flagged" '"Exec".*"no_preload".*/true"'
		has_not "$source: and known to its end" '"env_unknown"'
	fi
	long=$(head -c 60000 /dev/zero | tr '\0' x)
	if run "$source: a long environment" -- env A="$long" B="$long" \
			LD_PRELOAD=libmemtrack-preload.so /bin/true; then
		has_not "$source: a long environment is read to its end" '"no_preload".*/true"'
		has_not "$source: and known" '"env_unknown".*/true"'
	fi
	chunk=$(head -c 4093 /dev/zero | tr '\0' x)
	if run "$source: a string that fills a chunk" -- env -i A="$chunk" LD_PRELOAD=libmemtrack-preload.so /bin/true; then
		has_not "$source: what follows a string that fills a chunk is seen" '"no_preload".*/true"'
	fi
	if run "$source: a long LD_PRELOAD" -- env LD_PRELOAD="$long" /bin/true; then
		has "$source: an LD_PRELOAD that is too long is not known" '"env_unknown".*/true"'
	fi
done

source=tp_btf
if [ -x "$MT_BUILDDIR/tests/e2e/kernel_static" ]; then
	run "a static program" -- "$MT_BUILDDIR/tests/e2e/kernel_static" &&
		has "a static program is flagged" '"known","no_interp"'
fi
run "a dynamic one" -- /bin/true && has_not "a dynamic one is not" 'no_interp\|secure\|foreign'

if [ "$(id -u)" = 0 ]; then
	cp "$(readlink -f /bin/true)" "$work/set_id" && chmod 4755 "$work/set_id" && chmod 755 "$work"
	set_id() { setpriv --reuid 65534 --clear-groups "$@"; }
	run "a set-uid program" -- setpriv --reuid 65534 --clear-groups "$work/set_id"
	[ "$MT_HAVE_BPF" != 1 ] || has "a set-uid program is flagged" '"known","secure".*set_id"'
	source=perf
	run "perf: a set-uid program" --drop-uid=0 -- setpriv --reuid 65534 --clear-groups "$work/set_id"
	has "perf: a set-uid program's exec is seen, and then nothing" '"Exec".*set_id"\|"Unseen"'
	source=tp_btf
fi

# A 32-bit image: an ELF header, a program header, and exit(0).
if [ "$(uname -m)" = x86_64 ]; then
	printf '\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0\124\200\4\10\64\0\0\0\0\0\0\0\0\0\0\0\64\0\40\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\200\4\10\0\200\4\10\140\0\0\0\140\0\0\0\5\0\0\0\0\20\0\0\61\333\61\300\100\315\200\0\0\0\0\0' >"$work/elf32"
	chmod +x "$work/elf32"
	if "$work/elf32" 2>/dev/null; then
		run "a 32-bit program" -- "$work/elf32" &&
			has "a 32-bit program is flagged" '"known","no_interp","foreign"'
	else
		skip "a 32-bit program is flagged" "the kernel runs no 32-bit programs"
	fi
fi

# Numbers are those of the tracer's namespace, ns_ those of the innermost.
if [ "$(id -u)" = 0 ] && run "a nested PID namespace" -- "$actions" nested; then
	if grep -q '"status":19712' "$out"; then
		skip "processes of a nested PID namespace have our numbers" "no PID namespaces"
	else
		has "processes of a nested PID namespace have our numbers, and theirs" \
			'"Fork".*"ns_pid":1,"ns_tid":1'
		has "to any depth" '"Fork".*"ns_pid":2,"ns_tid":2'
		has "so has their thread" '"ThreadExit".*"ns_pid":1,"ns_tid":3'
		has "and their end" '"Exit".*"status":256,"ns_pid":1'
	fi
fi
for source in tp_btf raw_tp perf; do
	name="$source: the tracer in a nested PID namespace"
	if ! unshare -pf --mount-proc true 2>/dev/null; then
		skip "$name" "no PID namespaces"
	elif unshare -pf --mount-proc "$trace" --process=$source -- sh -c '(exit 9); exit 4' \
			>"$out" 2>"$work/err"; then
		# The tracer is 1, the command 2, its child 3.
		want "$name numbers as it sees it" "$(count Fork) $(grep -c '"Fork".*"pid":3,"tid":3,"parent_pid":2,' "$out") $(grep -c '"Exit".*"pid":2' "$out")" = "1 1 1"
	else
		[ $source != perf ] && ! ebpf_must_run && skip "$name" "no eBPF" && continue
		not_ok "$name" "$work/err" "$out"
	fi
done

source=tp_btf
run "a small ring" --ring=4096 --drain-at-end --later-maps=none -- "$actions" forks 500 &&
	has "records that do not fit are told" '"Lost".*"lost":[1-9]'
source=perf
run "small perf rings" --drain-at-end -- "$actions" forks 14000 &&
	has "so are those of perf" '"Lost".*"lost":[1-9]'
plan
