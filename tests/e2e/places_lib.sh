# SPDX-License-Identifier: MIT OR Apache-2.0
# What the tests of kinds 55 and 56 share. Sourced by them, after lib.sh.
need_product
need_command "$PYTHON" python3
cc=$(make_value CC)
cat >"$WORK/part.c" <<'END'
#include <stdlib.h>
void *take(size_t size);
void *PART(void);
void *PART(void) { return malloc(1); }
void *take(size_t size) { return malloc(size); }
END

# make_part NAME OPTION...: lib<NAME>.so, as large as the others.
make_part()
{
	part=$1
	shift
	$cc -O1 -fPIC -shared -fno-builtin "-DPART=part_$part" -o "$WORK/lib$part.so" "$@" "$WORK/part.c" || exit 1
}

# right TEXT NAME COUNT: what the program said in $WORK/out, COUNT lines, is what the artifact has.
right()
{
	"$MEMTRACK" modules "$WORK/$2" | "$PYTHON" -B "$E2E/places.py" "$WORK/out" $PLACES_OPTIONS >"$WORK/said" 2>&1
	tap_equal "$1: each place is found, at its time" "$3 looked up" "$(cat "$WORK/said")"
}
PLACES_OPTIONS=--code
