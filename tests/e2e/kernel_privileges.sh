# SPDX-License-Identifier: MIT OR Apache-2.0
# Whatever may be used here is found, and what is missing is said in one line that names the way out.
# Draining goes on after all privileges are given up.
. "$MT_SRCDIR/tests/e2e/kernel_lib.sh"

out=$work/trace
mkdir -p "$work/bin"
cp "$trace" "$MT_BUILDDIR/tests/e2e/kernel_actions" "$work/bin" && chmod -R a+rX "$work" || exit 1
actions=$work/bin/kernel_actions

# expect NAME PROCESS MISSING [COUNT]: sources, a pattern of the line, and the forks that were seen.
expect() {
	expect_name=$1
	if [ "$rc" != 0 ]; then
		not_ok "$expect_name: ended with $rc" "$work/err" "$out"
	elif ! grep -q "\"Report\",\"process\":\"$2\".*\"missing\":\"$3\"" "$out"; then
		not_ok "$expect_name: the report" "$out"
	elif [ -n "$4" ] && [ "$(grep -c '"Fork"' "$out")" != "$4" ]; then
		not_ok "$expect_name: forks" "$out"
	elif [ -s "$work/err" ]; then
		not_ok "$expect_name: something was printed" "$work/err"
	else
		ok "$expect_name"
	fi
}

run() { "$@" >"$out" 2>"$work/err"; rc=$?; }

no_ebpf=CAP_BPF
[ "$MT_HAVE_BPF" = 1 ] || no_ebpf="built without eBPF"
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo 3)
unprivileged=perf forks=100
if [ "$paranoid" -gt 2 ]; then unprivileged=none forks=; fi

if [ "$(id -u)" = 0 ]; then
	as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
	# shellcheck disable=SC2086
	run $as_nobody "$work/bin/kernel_trace" -- "$actions" forks 100
	expect "without privileges perf is used" $unprivileged ".*eBPF: .*$no_ebpf.*" $forks
	# shellcheck disable=SC2086
	run sh -c 'ulimit -l 64; exec "$@"' - $as_nobody "$work/bin/kernel_trace" -- "$actions" forks 100
	expect "and with 64 KiB of locked memory" $unprivileged ".*$no_ebpf.*" $forks
fi
if unshare -r true 2>/dev/null; then
	run unshare -r "$work/bin/kernel_trace" -- "$actions" forks 100
	expect "as root of a user namespace only" $unprivileged ".*$no_ebpf.*" $forks
else
	skip "as root of a user namespace only" "no user namespaces"
fi
run "$trace" --deny -- "$actions" forks 10
expect "nothing is allowed: nothing is seen, and that is said" none \
	"no kernel events: eBPF: .*$no_ebpf.*; perf: .*kernel.perf_event_paranoid.*" 0
run "$trace" --level=off -- "$actions" forks 10
expect "switched off" none "" 0

if ebpf_must_run; then
	run "$trace" -- "$actions" forks 100
	expect "as root eBPF is used, and nothing is missing" tp_btf "" 100
	run sh -c 'ulimit -l 64; exec "$@"' - "$trace" -- "$actions" forks 100
	expect "and with 64 KiB of locked memory" tp_btf "" 100
	run "$trace" --level=full -- "$actions" forks 100
	expect "all of it, when that is demanded" tp_btf "" 100
	run "$trace" --level=basic -- "$actions" forks 100
	expect "perf alone, when that is demanded" perf "" 100
	run "$trace" --drop-uid=65534 -- "$actions" forks 1000
	expect "draining goes on after setuid" tp_btf "" 1000
	run "$trace" --process=perf --drop-uid=65534 -- "$actions" forks 1000
	expect "so it does with perf" perf ".*" 1000
	mkdir -p "$work/nothing"
	run unshare -m sh -c 'mount --bind "$0/nothing" /sys/kernel/btf && exec "$@"' "$work" \
		"$trace" -- "$actions" forks 100
	expect "without BTF perf is used" perf ".*/sys/kernel/btf/vmlinux.*" 100
	run unshare -m sh -c 'mount --bind "$0/nothing" /sys/kernel/btf && exec "$@"' "$work" \
		"$trace" --level=full -- "$actions" forks 100
	if [ $rc = 77 ] && grep -q 'eBPF cannot be used as --bpf=full demands: .*btf/vmlinux' "$work/err"; then
		ok "a demand that cannot be met is an error that says why"
	else
		not_ok "a demand that cannot be met is an error that says why" "$work/err" "$out"
	fi
else
	skip "eBPF as root" "not root, or no BTF, or built without eBPF"
fi
plan
