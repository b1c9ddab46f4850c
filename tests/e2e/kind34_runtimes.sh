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
tap_done
