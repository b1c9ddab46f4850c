# SPDX-License-Identifier: MIT OR Apache-2.0
# Shared by the kernel tests: TAP, a place to work in, and which sources must run here.
trace="$MT_BUILDDIR/tests/e2e/kernel_trace"
tap=0
failed=0
work=$(mktemp -d "${TMPDIR:-/tmp}/mt-kernel.XXXXXX") || exit 1
# The leak checker of a sanitizer build cannot run in programs that set-id or strace started.
trap 'rm -rf "$work"' EXIT

ok() { tap=$((tap + 1)); echo "ok $tap - $1"; }
skip() { tap=$((tap + 1)); echo "ok $tap - $1 # SKIP $2"; }
not_ok() {
	tap=$((tap + 1)); failed=1
	echo "not ok $tap - $1"
	shift
	for detail in "$@"; do
		[ -f "$detail" ] && sed 's/^/# /' "$detail" | head -n 25
	done
}
plan() { echo "1..$tap"; exit "$failed"; }

# As root on a kernel with BTF eBPF must work; elsewhere its tests may be skipped.
ebpf_must_run() {
	[ "$MT_HAVE_BPF" = 1 ] && [ "$(id -u)" = 0 ] && [ -r /sys/kernel/btf/vmlinux ]
}

# run_trace NAME OUT ERR ARGS...: 0 it ran, 1 it failed (told), 2 skipped (told).
run_trace() {
	run_name=$1 run_out=$2 run_err=$3
	shift 3
	"$trace" "$@" >"$run_out" 2>"$run_err" && return 0
	run_rc=$?
	if [ $run_rc = 77 ] && ! { ebpf_must_run; }; then
		skip "$run_name" "$(head -n 1 "$run_err")"
		return 2
	fi
	not_ok "$run_name: the tracer ended with $run_rc" "$run_err" "$run_out"
	return 1
}

# The process tree of a trace, whatever the pids: "LABEL what". A label is the parent's label and
# which of its children it is. $1: with_status or without_status.
tree_of_trace() {
	awk -v with="$1" '
	function field(name,   s) {
		if (!match($0, "\"" name "\":(\"[^\"]*\"|[-0-9]+)")) return ""
		s = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
		gsub(/"/, "", s); return s
	}
	/"type":"Report"/ { label[field("root")] = "0" }
	/"type":"Fork"/ { p = field("parent_pid"); label[field("pid")] = label[p] "." ++born[p]
			  born[field("pid")] = 0 }
	/"type":"Exec"/ { print label[field("pid")], "exec", field("path") }
	/"type":"Exit"/ { s = field("status")
			  print label[field("pid")], "exit" (with == "with_status" ? " " s : "") }
	' | sort
}

# The same from strace -f -e trace=process -o: exit statuses as wait(2) gives them.
tree_of_strace() {
	awk -v with="$1" '
	BEGIN { n = split("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM", s, " ")
		for (i = 1; i <= n; i++) signal["SIG" s[i]] = i }
	# A child may be heard of before the call that made it has returned: names come at the end.
	function note(what) { n_notes++; noted_pid[n_notes] = $1; noted[n_notes] = what }
	{ pid = $1 }
	NR == 1 { label[pid] = "0" }
	/(clone|clone3|fork|vfork)(\(| resumed)/ && / = [0-9]+$/ {
		parent[$NF] = pid; nth[$NF] = ++born[pid] }
	/execve(at)?\(/ { match($0, /"[^"]*"/); path[pid] = substr($0, RSTART + 1, RLENGTH - 2) }
	/(execve(at)?\(|execve(at)? resumed).* = 0$/ { note("exec " path[pid]) }
	/\+\+\+ exited with / { note("exit" (with == "with_status" ? " " $5 * 256 : "")) }
	/\+\+\+ killed by / { note("exit" (with == "with_status" ? " " \
		signal[$5] + (/core dumped/ ? 128 : 0) : "")) }
	function label_of(pid) { return pid in label ? label[pid] : label_of(parent[pid]) "." nth[pid] }
	END { for (i = 1; i <= n_notes; i++) print label_of(noted_pid[i]), noted[i] }
	' | while read -r label what value; do
		[ "$what" = exec ] && value=$(readlink -f "$value")
		echo "$label $what${value:+ $value}"
	done | sort
}
