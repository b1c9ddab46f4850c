# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 5: a static program, or one with an allocator in its executable, cannot be intercepted. It
# runs as itself and is named, as the command or as a child; never a quiet zero.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
cc=$(make_value CC)
ulimit -c 0

untracked()
{
	tap_check "$1: stderr says so, and names it" grep -q "untracked: .*$2" "$WORK/err"
	"$MEMTRACK" stat "$WORK/run" >"$WORK/stat" 2>&1
	tap_check "$1: stat names it, and why" grep -q "$2 ($3)" "$WORK/stat"
	verified "$1" run
}

# launch COMMAND...
launch()
{
	rm -f "$WORK/run"
	bounded 60 "$LAUNCHER" -o "$WORK/run" -- "$@" </dev/null >"$WORK/out" 2>"$WORK/err"
}

# not_seen TEXT PROGRAM REASON: as the command, as a child beside one that is tracked, and in between.
not_seen()
{
	launch "$WORK/$2" 100 333
	tap_equal "$1: ends as itself" 0 $?
	tap_equal "$1: its blocks are not made up" 0 "$(count_size run 333)"
	untracked "$1" "$2" "$3"
	launch sh -c '"$1" 100 333; "$2" 100 444' sh "$WORK/$2" "$PROGRAMS/blocks"
	tap_equal "$1 as a child: the command ends as itself" 0 $?
	untracked "$1 as a child" "$2" "$3"
	tap_equal "$1 as a child: its sibling is tracked" 100 "$(count_size run 444)"
	bounded 60 "$LAUNCHER" -q --force --require-complete -o "$WORK/run" -- "$WORK/$2" 100 333 2>"$WORK/err"
	tap_equal "$1: --require-complete makes it a failure" 125 $?
}

# link_static NAME OPTION
link_static()
{
	if $cc $2 -o "$WORK/$1" "$E2E/blocks.c" -pthread 2>/dev/null; then
		not_seen "program linked with $2" "$1" static
	else
		tap_skip "program linked with $2" "no static libc to link with"
	fi
}

link_static alone_static -static
link_static alone_static_pie -static-pie

# own TEXT NAME OPTION...
own()
{
	own_text=$1
	own_name=$2
	shift 2
	$cc -std=gnu11 -O0 -fno-builtin -o "$WORK/$own_name" "$@" "$E2E/own_malloc.c" || exit 1
	not_seen "$own_text" "$own_name" own-malloc
}

own "its own malloc" own_plain
own "its own malloc, hidden" own_hidden '-DOWN_VISIBILITY="hidden"'
own "its own malloc, position dependent, all exported" own_exported -no-pie -rdynamic
own "an allocator with a prefix, as in Rust" own_prefixed '-DOWN(name)=_rjem_##name'
own "another prefix, hidden" own_prefixed_hidden '-DOWN(name)=mi_##name' '-DOWN_VISIBILITY="hidden"'

# A program that may be run and not be read: nobody else can look at its symbols, so the library has to
# tell of them. Root can read all, so it is another user's run.
if test "$(id -u)" -eq 0 && command -v setpriv >/dev/null; then
	chmod 755 "$WORK"
	mkdir -p "$WORK/parts/preload/.libs" "$WORK/open"
	chmod 777 "$WORK/open"
	cp "$LAUNCHER" "$MT_BUILDDIR/memtrack-sidecar" "$WORK/own_plain" "$WORK/parts/"
	cp "$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so" "$WORK/parts/preload/.libs/"
	chmod -R a+rX "$WORK/parts"
	chmod 711 "$WORK/parts/own_plain"
fi
if test -e "$WORK/parts" && setpriv --reuid 65534 --clear-groups test -x "$WORK/parts/own_plain"; then
	bounded 60 setpriv --reuid 65534 --regid 65534 --clear-groups "$WORK/parts/${LAUNCHER##*/}" \
		--bpf=off -o "$WORK/open/run" -- "$WORK/parts/own_plain" 100 333 </dev/null >"$WORK/out" 2>"$WORK/err"
	tap_equal "its own malloc, not to be read: ends as itself" 0 $?
	tap_check "its own malloc, not to be read: stderr says so" \
		grep -q "untracked: .*its own malloc comes before ours" "$WORK/err"
else
	tap_skip "its own malloc, not to be read" "needs root, and a ${TMPDIR:-/tmp} that others can read"
fi

# A library in front of ours in LD_PRELOAD that is an allocator takes all calls. One that passes them on
# is none, and all is recorded.
ahead()
{
	rm -f "$WORK/run"
	bounded 60 "$LAUNCHER" --no-follow-env -o "$WORK/run" -- sh -c 'LD_PRELOAD=$1:$LD_PRELOAD exec "$2" 100 333' \
		sh "$1" "$PROGRAMS/blocks" </dev/null >"$WORK/out" 2>"$WORK/err"
}
for name in libjemalloc.so.2 libmimalloc.so.2 libtcmalloc_minimal.so.4; do
	allocator=$(find_library $name)
	if test -z "$allocator"; then
		tap_skip "$name before ours" "it is not installed"
		continue
	fi
	ahead "$allocator"
	tap_equal "$name before ours: ends as itself" 0 $?
	tap_equal "$name before ours: its blocks are not made up" 0 "$(count_size run 333)"
	untracked "$name before ours" blocks own-malloc
	rm -f "$WORK/run"
	MEMTRACK_SIDECAR=$(find_built memtrack-sidecar) MEMTRACK_OUTPUT=$WORK/run \
		LD_PRELOAD=$allocator:$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so \
		bounded 60 "$PROGRAMS/blocks" 100 333 </dev/null >"$WORK/out" 2>"$WORK/err"
	tap_equal "$name before ours by hand: ends as itself, and is not called complete" "0 1" \
		"$? $("$MEMTRACK" verify --wait --require-complete "$WORK/run" >"$WORK/verify" 2>&1; echo $?)"
done
truncate -s "$COUNTER_BYTES" "$WORK/counts"
export MT_COUNTER="$WORK/counts"
ahead "$COUNTER"
tap_equal "a library that passes calls on before ours: tracked" "0 100 0" \
	"$? $(count_size run 333) $(grep -c 'untracked: pid' "$WORK/err")"
verified "a library that passes calls on before ours" run

# Of a stripped file its own words are left.
for words in '<jemalloc>: Out of memory' 'mimalloc: error: out of memory' 'tcmalloc: large alloc %zu'; do
	printf 'extern const char own_words[];\nconst char own_words[] = "%s";\n' "$words" >"$WORK/words.c"
	own "stripped, with the words ${words%%:*}" "own_stripped" -s '-DOWN(name)=own_##name' "$WORK/words.c"
done
cp "$PROGRAMS/blocks" "$WORK/stripped"
strip "$WORK/stripped" || exit 1
launch "$WORK/stripped" 100 333
tap_equal "stripped, without such words: tracked" "100 0" "$(count_size run 333) $(grep -c 'untracked: pid' "$WORK/err")"

# A name that is only used, or that is no function, or that a name ends with, is none of that.
cat >"$WORK/innocent.c" <<'END'
#include <stdlib.h>
int je_malloc = 7;
void *xmalloc(size_t size) { return malloc(size); }
void *my_malloc(size_t size) { return malloc(size); }
int main(void) { return xmalloc(333) && my_malloc(333) && je_malloc == 7 ? 0 : 1; }
END
$cc -O0 -fno-builtin -rdynamic -o "$WORK/innocent" "$WORK/innocent.c" || exit 1
launch "$WORK/innocent"
tap_equal "names that only look like an allocator's: ends as itself" 0 $?
tap_equal "names that only look like an allocator's: tracked" "2 0" \
	"$(count_size run 333) $(grep -c 'untracked: pid' "$WORK/err")"
# Stripped, its only table is the loader's, in which a name that is used is as short as one's own.
if strip -o "$WORK/innocent_stripped" "$WORK/innocent" 2>/dev/null; then
	launch "$WORK/innocent_stripped"
	tap_equal "the same, stripped: tracked" "2 0" "$(count_size run 333) $(grep -c 'untracked: pid' "$WORK/err")"
else
	tap_skip "the same, stripped" "strip is not installed (package binutils)"
fi

archive=$($cc -print-file-name=libjemalloc.a)
if test -e "$archive"; then
	$cc -std=gnu11 -fno-builtin -o "$WORK/own_jemalloc" "$E2E/blocks.c" "$archive" -lm -ldl -lstdc++ -pthread ||
		exit 1
	not_seen "jemalloc linked into the executable" own_jemalloc own-malloc
else
	tap_skip "jemalloc linked into the executable" "libjemalloc.a is not installed (package libjemalloc-dev)"
fi

# The crate that most Rust programs with an allocator of their own use, from Debian's registry.
registry=/usr/share/cargo/registry
if test "$(long short long)" = short; then
	tap_skip "Rust with jemalloc" "only in make check-long"
elif ! command -v cargo >/dev/null || ! ls -d "$registry"/jemalloc-sys-* >/dev/null 2>&1; then
	tap_skip "Rust with jemalloc" "it is not installed (packages cargo, librust-jemalloc-sys-dev)"
else
	mkdir -p "$WORK/rust/src" "$WORK/rust/.cargo"
	printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "%s"\n' "$registry" \
		>"$WORK/rust/.cargo/config.toml"
	cat >"$WORK/rust/Cargo.toml" <<'END'
[package]
name = "own_rust"
version = "0.1.0"
edition = "2021"
[dependencies]
jemalloc-sys = "0"
[features]
unprefixed = ["jemalloc-sys/unprefixed_malloc_on_supported_platforms"]
END
	cat >"$WORK/rust/src/main.rs" <<'END'
use std::alloc::{GlobalAlloc, Layout};
struct Jemalloc;
fn align(layout: Layout) -> i32 { layout.align().trailing_zeros() as i32 }
unsafe impl GlobalAlloc for Jemalloc {
	unsafe fn alloc(&self, layout: Layout) -> *mut u8 { jemalloc_sys::mallocx(layout.size(), align(layout)) as *mut u8 }
	unsafe fn dealloc(&self, block: *mut u8, layout: Layout) { jemalloc_sys::sdallocx(block as *mut _, layout.size(), align(layout)) }
}
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;
fn main() {
	let threads: Vec<_> = (0..4).map(|t| std::thread::spawn(move || (0..9999).map(|i| vec![t; i % 777].len()).sum::<usize>())).collect();
	std::process::exit((threads.into_iter().map(|t| t.join().unwrap()).sum::<usize>() == 0) as i32)
}
END
	for features in "" unprefixed; do
		(cd "$WORK/rust" && cargo build --offline --release --features "$features") >"$WORK/err" 2>&1 || {
			tap_fail "Rust with jemalloc ${features:-prefixed}: can be built" "$WORK/err"
			continue
		}
		cp "$WORK/rust/target/release/own_rust" "$WORK/own_rust"
		not_seen "Rust with jemalloc ${features:-prefixed}" own_rust own-malloc
		strip "$WORK/own_rust"
		not_seen "Rust with jemalloc ${features:-prefixed}, stripped" own_rust own-malloc
	done
fi
if command -v go >/dev/null && test "$(long short long)" = long; then
	echo 'package main; func main() { println(len(make([]byte, 333))) }' >"$WORK/hello.go"
	(cd "$WORK" && GO111MODULE=off CGO_ENABLED=0 GOCACHE=$WORK/cache go build -o go_hello hello.go) || exit 1
	not_seen "Go without C" go_hello static
else
	tap_skip "Go without C" "only in make check-long, where go is installed"
fi
tap_done
