# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 34: runtimes with heaps of their own run as without us.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product

same()
{
	text=$1
	shift
	"$@" >"$WORK/plain" 2>&1 </dev/null
	plain=$?
	track run "$@" >"$WORK/out" 2>&1 </dev/null
	tap_equal "$text: status as without us" $plain $?
	tap_check "$text: output as without us" cmp "$WORK/plain" "$WORK/out"
	verified "$text" run
}

if test -x "$PYTHON"; then
	same "python3 with its own heap" "$PYTHON" -c 'print(sum(len(str(i)) for i in [*range(300000)]))'
	same "python3 with processes by fork" "$PYTHON" -c 'import multiprocessing as m
if __name__ == "__main__":
    m.set_start_method("fork")
    with m.Pool(3) as pool: print(sum(pool.map(len, ["x" * i for i in range(2000)])))'
	same "python3 with threads" "$PYTHON" -c 'import concurrent.futures as f
with f.ThreadPoolExecutor(8) as pool: print(sum(pool.map(len, [b"x" * i for i in range(3000)])))'
fi
objects=$(long 100000 1000000)
many="print(len([[i] for i in range($objects)]))"
track run "$PYTHON" -S -c "$many" >"$WORK/out" 2>"$WORK/err"
tap_check "python3, its own heap: its arenas are there, as blocks or mappings" \
	test $(($(count_type run Mmap) + $(dump run | grep -cE '"size":(262144|1048576)[,}]'))) -gt 10
tap_check "python3, its own heap: the objects in them are not" test "$("$MEMTRACK" stat "$WORK/run" |
	sed -n 's/^Allocations  *\([0-9,]*\),.*/\1/p' | tr -d ,)" -lt "$objects"
same "python3 with PYTHONMALLOC=malloc" env PYTHONMALLOC=malloc "$PYTHON" -S -c "$many"
tap_check "python3 with PYTHONMALLOC=malloc: every object is there" test "$("$MEMTRACK" stat "$WORK/run" |
	sed -n 's/^Allocations  *\([0-9,]*\),.*/\1/p' | tr -d ,)" -gt "$((2 * objects))"
if command -v node >/dev/null; then
	same "node with worker threads" node -e 'const { Worker } = require("worker_threads");
let left = 3, sum = 0;
for (let i = 0; i < 3; i++) new Worker(`const { parentPort } = require("worker_threads");
parentPort.postMessage(JSON.stringify(Array.from({ length: 5000 }, (_, k) => k)).length)`, { eval: true })
	.on("message", (n) => { sum += n; if (--left === 0) console.log(sum); });'
else
	tap_skip "node with worker threads" "node is not installed (package nodejs)"
fi
for program in java go ruby; do
	if command -v $program >/dev/null; then
		case $program in
		java) same java java -version ;;
		go) same go go version ;;
		ruby) same ruby ruby -e 'puts (1..100000).map(&:to_s).join.size' ;;
		esac
	else
		tap_skip "$program" "$program is not installed"
	fi
done

# runtime COMMAND PACKAGE TEXT ARGUMENT...: as `same`, where the command is installed.
runtime()
{
	runtime_command=$1
	runtime_package=$2
	runtime_text=$3
	shift 3
	if command -v "$runtime_command" >/dev/null; then
		same "$runtime_text" "$runtime_command" "$@"
	else
		tap_skip "$runtime_text" "$runtime_command is not installed (package $runtime_package)"
	fi
}

# in_long TEXT COMMAND PACKAGE: whether the case is to run; says why not.
in_long()
{
	if test "$(long short long)" = short; then
		tap_skip "$1" "only in make check-long"
	elif ! command -v "$2" >/dev/null; then
		tap_skip "$1" "$2 is not installed (package $3)"
	else
		return 0
	fi
	return 1
}

runtime lua5.4 lua5.4 "lua with a child" -e 'local t = {}
for i = 1, 50000 do t[i] = tostring(i) .. "x" end
local f = io.popen("echo kid")
print(#t, f:read("a"), f:close())'
cat >"$WORK/kids.php" <<'END'
<?php
$a = [];
for ($i = 0; $i < 50000; $i++) $a[] = str_repeat("x", $i % 100);
echo count($a), trim(shell_exec("echo kid")), "\n";
if (function_exists("pcntl_fork")) {
	$child = pcntl_fork();
	if (!$child) { $b = array_map("strval", range(1, 1000)); exit(3); }
	pcntl_waitpid($child, $status);
	echo pcntl_wexitstatus($status), "\n";
}
exit(5);
END
runtime php php-cli "php without extensions" -n "$WORK/kids.php"
if command -v php >/dev/null; then
	# They are opened with RTLD_DEEPBIND, past us (docs/limits.md): what comes of that is flagged.
	php "$WORK/kids.php" >"$WORK/plain" 2>&1 </dev/null
	track run php "$WORK/kids.php" >"$WORK/out" 2>&1 </dev/null
	tap_equal "php with its extensions: status as without us" 5 $?
	tap_check "php with its extensions: output as without us" cmp "$WORK/plain" "$WORK/out"
	"$MEMTRACK" verify "$WORK/run" >"$WORK/said" 2>&1
	contradictions=$(sed -n 's/^contradictions: *\([0-9]*\).*/\1/p' "$WORK/said")
	flags=$(sed -n 's/^flagged by the recorder: *//p' "$WORK/said" | grep -o '[0-9][0-9]*' | paste -sd+ -)
	tap_equal "php with its extensions: each contradiction was flagged as it was recorded" \
		"${contradictions:-0}" "$((${flags:-0}))"
fi

# Threads, children with an environment of their own and without, and an end by exit().
cat >"$WORK/plain.rs" <<'END'
use std::process::Command;
fn main() {
	let threads: Vec<_> = (0..4usize).map(|t| std::thread::spawn(move || {
		let mut kept: Vec<Vec<u8>> = Vec::new();
		for i in 0..5000 {
			kept.push(vec![t as u8; i % 777]);
			if i % 3 == 0 { let n = kept.len(); kept.swap_remove(i / 3 % n); }
		}
		kept.len()
	})).collect();
	let sum: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
	let kid = Command::new("/bin/echo").arg("kid").env_clear().output().unwrap();
	let code = Command::new("/bin/sh").args(["-c", "exit 3"]).status().unwrap().code();
	println!("{} {} {:?}", sum, String::from_utf8_lossy(&kid.stdout).trim(), code);
	std::process::exit(6)
}
END
if in_long "rust" rustc rustc; then
	rustc -O -o "$WORK/plain_rust" "$WORK/plain.rs" 2>"$WORK/err" || exit 1
	same "rust" "$WORK/plain_rust"
	blocks=$(($(count_type run Malloc) + $(count_type run Calloc)))
	tap_check "rust: its blocks are there ($blocks)" test "$blocks" -gt 19000
fi
cat >"$WORK/mixed.go" <<'END'
package main

/*
#include <pthread.h>
#include <stdlib.h>
static void *take(void *unused) { for (int i = 0; i < 1000; i++) free(malloc(333)); return unused; }
static void run_c(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++) pthread_create(t + i, 0, take, 0);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
}
*/
import "C"
import ("fmt"; "os"; "os/exec"; "sync")

func main() {
	var group sync.WaitGroup
	C.run_c()
	for i := 0; i < 50; i++ {
		group.Add(1)
		go func() { defer group.Done(); for k := 0; k < 100; k++ { C.free(C.malloc(444)) } }()
	}
	group.Wait()
	kid, _ := exec.Command("/bin/echo", "kid").Output()
	fmt.Print(string(kid))
	os.Exit(4)
}
END
if in_long "go with C" go golang-go; then
	(cd "$WORK" && CGO_CFLAGS="-O0 -fno-builtin" GO111MODULE=off CGO_ENABLED=1 GOCACHE=$WORK/cache \
		go build -o mixed_go mixed.go) || exit 1
	same "go with C" "$WORK/mixed_go"
	tap_equal "go with C: every block of the C side" "4000 5000" "$(count_size run 333) $(count_size run 444)"
fi
cat >"$WORK/kids.erl" <<'END'
#!/usr/bin/env escript
main(_) ->
	P = self(),
	[spawn(fun() -> P ! length([integer_to_list(I) || I <- lists:seq(1, 2000)]) end) || _ <- lists:seq(1, 50)],
	io:format("~p ~s", [lists:sum([receive N -> N end || _ <- lists:seq(1, 50)]), os:cmd("echo kid")]).
END
! in_long "erlang" escript erlang-base || same "erlang" escript "$WORK/kids.erl"
! in_long "luajit" luajit luajit ||
	same "luajit" luajit -e 'local t = {} for i = 1, 1e6 do t[i % 1000] = i .. "" end print(#t)'
! in_long "guile" guile guile-3.0 ||
	same "guile" guile --no-auto-compile -c '(display (length (map number->string (iota 100000))))'
! in_long "sbcl" sbcl sbcl ||
	same "sbcl" sbcl --noinform --eval '(progn (print (length (loop for i to 99999 collect (format nil "~a" i))))
		(sb-ext:exit :code 3))'
! in_long "a program in Haskell" shellcheck shellcheck ||
	same "a program in Haskell" shellcheck "$MT_SRCDIR/quickstart"
tap_done
