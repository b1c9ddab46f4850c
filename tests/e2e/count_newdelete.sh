# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 22: C++ operators. All forms of new and delete are one event a block, of the right kind.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
counted "all forms of new and delete" "$PROGRAMS/newdelete"
dump counted >"$WORK/all"
for size in 5001 5002 5003 5004 5005 5006 5007 5008; do
	tap_equal "new of $size bytes: 100 times, as Malloc" 100 \
		"$(grep -c "\"type\":\"Malloc\",\"size\":${size}[,}]" "$WORK/all")"
done
for size in 6016 6080 6144 6208 6272 6336; do
	tap_equal "aligned new of $size bytes: 100 times, as AlignedAlloc" 100 \
		"$(grep -c "\"type\":\"AlignedAlloc\",\"size\":${size}[,}]" "$WORK/all")"
done
tap_equal "a class with its own operators: once each" 100 \
	"$(grep -c "\"type\":\"Malloc\",\"size\":7001[,}]" "$WORK/all")"
tap_equal "after an exception: once each" 10 "$(grep -c "\"type\":\"Malloc\",\"size\":5555[,}]" "$WORK/all")"
# With the operators in the executable itself.
if $(make_value CXX) -std=c++17 -fno-builtin -pthread -static-libstdc++ -static-libgcc -o "$WORK/static_operators" \
	"$E2E/newdelete.cc" 2>"$WORK/err"; then
	COUNTER=$PROGRAMS/.libs/libcounter_c.so
	tracked "operators linked into the program" "$WORK/static_operators"
	dump run >"$WORK/all"
	tap_equal "operators linked into the program: once each" "100 100 100 100 10" \
		"$(for size in 5001 5008 6016 6336 5555; do grep -c "\"size\":${size}[,}]" "$WORK/all"; done | paste -sd' ')"
else
	tap_skip "operators linked into the program" "no static libstdc++"
fi

# A library's operators that call malloc, and keep books by malloc behind it.
cat >"$WORK/books.cc" <<'END'
#include <cstdlib>
#include <new>
struct entry { entry *next; void *block; };
static entry *entries;
void *operator new(std::size_t size)
{
	void *block = malloc(size);
	entry *added = static_cast<entry *>(malloc(sizeof(entry)));

	*added = { entries, block };
	entries = added;
	return block;
}
void operator delete(void *block) noexcept
{
	for (entry **at = &entries; *at; at = &(*at)->next) {
		entry *found = *at;

		if (found->block == block) {
			*at = found->next;
			free(found);
			break;
		}
	}
	free(block);
}
void operator delete(void *block, std::size_t) noexcept { operator delete(block); }
END
cat >"$WORK/booked.cc" <<'END'
struct large { char bytes[4321]; };
int main()
{
	for (int i = 0; i < 1000; i++)
		delete new large;
	return 0;
}
END
cxx=$(make_value CXX)

# link_with LIBRARY MAIN PROGRAM: LIBRARY.cc as a shared library, and MAIN.cc with it.
link_with()
{
	$cxx -w -O0 -fno-builtin -fPIC -shared -o "$WORK/lib$1.so" "$WORK/$1.cc" &&
		$cxx -w -O0 -fno-builtin -o "$WORK/$3" "$WORK/$2.cc" "$WORK/lib$1.so" || exit 1
}

link_with books booked booked
tracked "a library's operators that keep books" "$WORK/booked"
tap_equal "a library's operators that keep books: once each" 1000 "$(count_size run 4321)"

# Those that keep their books in front of the block that they give out.
cat >"$WORK/headed.cc" <<'END'
#include <cstdlib>
#include <new>
void *operator new(std::size_t size)
{
	char *block = static_cast<char *>(malloc(size + 16));

	*reinterpret_cast<std::size_t *>(block) = size;
	return block + 16;
}
void operator delete(void *block) noexcept
{
	if (block)
		free(static_cast<char *>(block) - 16);
}
void operator delete(void *block, std::size_t) noexcept { operator delete(block); }
END
link_with headed booked with_headed
tracked "a library's operators that keep a header" "$WORK/with_headed"
tap_equal "a library's operators that keep a header: one block each, as malloc gave it" "0 1000 1000" \
	"$(count_size run 4321) $(count_size run 4337) $(count_type run Free)"

# Those that cut their blocks from one pool: each form is either seen or not, as its deletes are.
cat >"$WORK/pooled.cc" <<'END'
#include <cstdlib>
#include <new>
static char *at, *end;
static void *cut(std::size_t size)
{
	if (static_cast<std::size_t>(end - at) < size) {
		at = static_cast<char *>(malloc(1 << 20));
		end = at + (1 << 20);
	}
	at += (size + 15) & ~15ul;
	return at - ((size + 15) & ~15ul);
}
void *operator new(std::size_t size) { return cut(size); }
void *operator new[](std::size_t size) { return cut(size); }
void operator delete(void *) noexcept {}
void operator delete[](void *) noexcept {}
void operator delete(void *, std::size_t) noexcept {}
void operator delete[](void *, std::size_t) noexcept {}
END
cat >"$WORK/cuts.cc" <<'END'
struct one { char bytes[321]; };
int main()
{
	for (int i = 0; i < 1000; i++) {
		one *single = new one;
		one *many = new one[3];

		delete single;
		delete[] many;
	}
	return 0;
}
END
link_with pooled cuts cuts
tracked "a library's operators with a pool" "$WORK/cuts"
tap_equal "a library's operators with a pool: what the pool is made of is there, and no piece of it" "2 0 0" \
	"$(count_size run 1048576) $(count_size run 321) $(count_size run 963)"
tap_done
