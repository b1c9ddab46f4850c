# SPDX-License-Identifier: MIT OR Apache-2.0
# The preloaded library as built: it must fit into any program. It exports the hooks and nothing
# else, needs libc alone, calls only what is known to be safe, and has thread-local storage that
# never allocates.
. "$MT_SRCDIR/tests/lint/lib.sh"
library=$(shim_library)
test -n "$library" || tap_skip_all "the preloaded library was not built"
map=$MT_SRCDIR/preload/preload.map

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Names of the map's global part, without comments.
sed -e 's,/\*.*\*/,,' -e 's,#.*,,' "$map" | tr -d '\n\t ' | sed -e 's/.*global://' -e 's/local:.*//' |
	tr ';' '\n' | grep . | sort -u >"$work/map"
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort -u >"$work/exported"
tap_equal "shim: exports the hooks of its map, all and only them" "$(cat "$work/map")" "$(cat "$work/exported")"

readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' >"$work/needed"
tap_equal "shim: needs libc alone" "libc.so.6" "$(grep -v '^ld-linux' "$work/needed")"

sed -e 's/#.*//' -e 's/[ \t]*$//' "$MT_SRCDIR/tests/lint/shim_undefined.allow" | grep . | sort -u >"$work/allow"
nm -D --undefined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$work/undefined"
tap_equal "shim: calls only what the allow-list names" "" "$(comm -13 "$work/allow" "$work/undefined")"

# Newer symbols keep the library out of containers with an older libc.
newest=$(readelf -VW "$library" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
tap_equal "shim: needs no symbol newer than glibc 2.17" "GLIBC_2.17" \
	"$(printf '%s\nGLIBC_2.17\n' "$newest" | sort -V | tail -n 1)"

tap_equal "shim: no thread-local storage that could allocate" "" \
	"$(readelf -rW "$library" | grep -E 'DTPMOD|DTPOFF|TLSDESC|__tls_get_addr')"

tls=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
tap_check "shim: at most 128 bytes of thread-local storage (${tls:-none})" test "$((${tls:-0}))" -le 128

tap_equal "shim: no executable stack" "RW" "$(readelf -lW "$library" | awk '$1 == "GNU_STACK" { print $7 }')"
tap_equal "shim: no text relocations" "" "$(readelf -dW "$library" | grep TEXTREL)"
tap_done
