# SPDX-License-Identifier: MIT OR Apache-2.0
# The same programs with jemalloc, mimalloc and tcmalloc, preloaded or linked, equal the independent
# count: there operator new need not come by malloc, and nested calls are the allocator's own (kind 26).
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
ulimit -c 0

for pair in jemalloc:libjemalloc.so.2 "mimalloc:libmimalloc.so.[23]" tcmalloc:libtcmalloc_minimal.so.4; do
	name=${pair%%:*}
	library=$(find_library "${pair#*:}")
	if test -z "$library"; then
		tap_skip "$name" "${pair#*:} is not installed"
		continue
	fi
	COUNTED_PRELOAD=$library
	# mimalloc, built as C, ends the program where new should throw.
	LD_PRELOAD=$library "$PROGRAMS/newdelete" >/dev/null 2>&1
	WANT_STATUS=$?
	counted "$name preloaded, new and delete" "$PROGRAMS/newdelete"
	WANT_STATUS=0
	counted "$name preloaded, 8 threads" "$PROGRAMS/passer" 8 4000
	counted "$name preloaded, forks" "$PROGRAMS/forker" 10
	counted "$name preloaded, perl" perl -e 'my %h; $h{$_ % 97} .= "x$_," for 1 .. 5000;'
	COUNTED_PRELOAD=
	for source in passer.c newdelete.cc; do
		case $source in
		*.cc) compile="$(make_value CXX) -std=c++17" ;;
		*) compile="$(make_value CC) -std=gnu11 -D_GNU_SOURCE" ;;
		esac
		if $compile -fno-builtin -pthread -o "$WORK/linked" "$E2E/$source" -Wl,--no-as-needed "$library" \
			2>"$WORK/err"; then
			arguments=
			test $source = newdelete.cc || arguments="8 4000"
			"$WORK/linked" $arguments >/dev/null 2>&1
			WANT_STATUS=$?
			counted "$name linked, ${source%.*}" "$WORK/linked" $arguments
			WANT_STATUS=0
		else
			tap_fail "$name linked, ${source%.*}: it compiles" "$WORK/err"
		fi
	done
done
tap_done
