# SPDX-License-Identifier: MIT OR Apache-2.0
# The figures of memtrack stat are those of a count by other means, for files whose events contradict
# each other at every turn and for real runs.
. "$MT_SRCDIR/tests/e2e/tool_lib.sh"
need_python

# recounted NAME FILE
recounted()
{
	for command in stat verify; do
		"$MEMTRACK" "$command" --json --threads 1 "$2" >alone 2>err
		"$MEMTRACK" "$command" --json --threads 3 "$2" >together 2>err
		same_text "$1: $command finds the same with three threads" alone together
	done
	"$MEMTRACK" stat --json "$2" >json 2>err || tap_fail "$1: stat ends with 0" err
	"$PYTHON" -B "$E2E/recount.py" "$2" json >out 2>&1
	tap_verdict "$1: every figure is as counted again" $? out
}

for name in empty every_kind frames skippable stacks; do
	recounted "golden $name" "$GOLDEN/$name.msgpack"
done
for name in tree bad; do
	make_artifact "$name"
	recounted "$name" "$name"
done
if test -z "$LAUNCHER"; then
	tap_skip "real runs" "memtrack-preload was not built"
	tap_done
fi
cat >script <<'EOS'
for i in 1 2 3 4 5; do (echo $i | sed s/1/2/) >/dev/null; done
"$1" -c 'import json, os, threading
def work():
    for i in range(200):
        json.loads(json.dumps({"key %d" % k: [k] * 9 for k in range(30)}))
threads = [threading.Thread(target=work) for i in range(4)]
[thread.start() for thread in threads]
if os.fork() == 0:
    keep = [bytearray(1000 + i) for i in range(500)]
    os._exit(0)
os.wait()
[thread.join() for thread in threads]'
exec ls / >/dev/null
EOS
track run env PYTHONMALLOC=malloc "$TRACKED_SH" script "$PYTHON" >out 2>err
tap_verdict "a shell with pipes, threads of python3, forks: is recorded" $? err
recounted "a shell with pipes, threads of python3, forks" run
tap_check "a shell with pipes, threads of python3, forks: verify is clean" "$MEMTRACK" verify run
"$MEMTRACK" dump run >out
tap_equal "dump has as many lines as stat has events" \
	"$("$PYTHON" -c 'import json; print(json.load(open("json"))["events"])')" "$(wc -l <out)"
tap_done
