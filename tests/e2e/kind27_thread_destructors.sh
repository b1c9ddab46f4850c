# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 27: destructors of thread-specific data take and free blocks while the thread ends; detached
# threads end while main calls exit().
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
tracked "destructors of joined threads" "$PROGRAMS/tsd" 50
dump run >"$WORK/all"
for size in 50000 50001 50002 50003; do
	tap_equal "destructors of joined threads: blocks of $size" 50 \
		"$(grep -c "\"type\":\"Malloc\",\"size\":${size}[,}]" "$WORK/all")"
done
run=1
while test "$run" -le "$(long 3 30)"; do
	tracked "detached threads at exit, run $run" "$PROGRAMS/tsd" 50 detached
	run=$((run + 1))
done
cat >"$WORK/local.cc" <<'END'
#include <cstring>
#include <string>
#include <thread>
#include <vector>
namespace
{
struct last_words {
	std::vector<std::string> *kept = new std::vector<std::string>;
	~last_words()
	{
		kept->push_back(std::string(27001, 'x'));
		delete kept;
	}
};
thread_local last_words words;
thread_local std::vector<char> bytes;
void use()
{
	bytes.resize(27002);
	words.kept->push_back(std::string(27003, 'y'));
}
} /* namespace */
int main()
{
	for (int round = 0; round < 20; round++) {
		std::thread first(use), second(use);
		first.join();
		second.join();
	}
	use();
	std::thread(use).detach();
	return 0;
}
END
$(make_value CXX) -std=c++17 -fno-builtin -pthread -o "$WORK/local" "$WORK/local.cc" || exit 1
tracked "thread_local objects with memory" "$WORK/local"
dump run >"$WORK/all"
# 40 threads that were joined, main, and one that may be ending.
vectors=$(grep -c '"size":27002[,}]' "$WORK/all")
strings=$(grep -c '"size":27004[,}]' "$WORK/all")
tap_check "thread_local objects with memory: all they took, in destructors too ($vectors and $strings)" 	test "$vectors" -ge 82 -a "$vectors" -le 84 -a "$strings" -ge 41 -a "$strings" -le 42
tap_done
