# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 55: an address leads to the right place of the right file, whenever it is looked up: libraries
# that follow each other at one address, files laid out oddly, mapped several times, removed or
# replaced while they run, in a mount namespace or a chroot of their own.
. "$MT_SRCDIR/tests/e2e/lib.sh"
. "$MT_SRCDIR/tests/e2e/places_lib.sh"
places=$PROGRAMS/places
make_part first
make_part other
make_part large -Wl,-z,max-page-size=0x200000
make_part dense -Wl,-z,noseparate-code
make_part far -Wl,-Ttext-segment=0x10000000

tracked "one library after the other" "$places" open "$WORK/libfirst.so" close open "$WORK/libother.so" close \
	open "$WORK/libfirst.so" open "$WORK/libother.so" where
right "one library after the other" run 9
tap_equal "one library after the other: they stood at one address" 1 \
	"$(head -n 3 "$WORK/out" | awk '{ print $3 }' | sort -u | wc -l)"
tap_equal "one library after the other: two files there" 2 \
	"$(head -n 3 "$WORK/out" | awk '{ print $6 }' | sort -u | wc -l)"
tap_equal "one library after the other: all their blocks" 4002 "$(count_size run 4321)"

for part in large dense far; do
	address=$(readelf -lW "$WORK/lib$part.so" | awk '$1 == "LOAD" && / R E /{ print $2, $3 }' | head -n 1)
	echo "# lib$part.so: code at offset and address $address"
	tracked "lib$part.so" "$places" open "$WORK/lib$part.so" where close open "$WORK/lib$part.so"
	right "lib$part.so" run 6
done
for options in "-no-pie -Wl,-Ttext-segment=0x10000000" "-no-pie -Wl,-z,max-page-size=0x200000" \
	"-pie -Wl,-z,noseparate-code"; do
	$cc -std=gnu11 -D_GNU_SOURCE $options -o "$WORK/laid_out" "$E2E/places.c" -ldl || exit 1
	tracked "program made with $options" "$WORK/laid_out" where open "$WORK/libfirst.so"
	right "program made with $options" run 4
done

# A program that is removed, and one that another file takes the name of.
cp "$places" "$WORK/removed"
cp "$WORK/libfirst.so" "$WORK/libgone.so"
PLACES_OPTIONS=
tracked "files that are removed" "$WORK/removed" open "$WORK/libgone.so" remove "$WORK/libgone.so" \
	remove "$WORK/removed" where
right "files that are removed" run 5
cp "$places" "$WORK/replaced"
cp "$WORK/laid_out" "$WORK/new_program"
cp "$WORK/libfirst.so" "$WORK/libname.so"
cp "$WORK/libother.so" "$WORK/new_library.so"
tracked "files that are replaced" "$WORK/replaced" where open "$WORK/libname.so" \
	replace "$WORK/new_library.so" "$WORK/libname.so" where close open "$WORK/libname.so" where \
	replace "$WORK/new_program" "$WORK/replaced" exec "$WORK/replaced" where open "$WORK/libname.so"
right "files that are replaced" run 17
tap_equal "files that are replaced: two files of each name" "2 2" \
	"$(for name in replaced libname.so; do awk -v name="/$name\$" '$8 ~ name { print $6 }' "$WORK/out" |
		sort -u | wc -l; done | paste -sd' ')"
tap_equal "files that are replaced: stat names the program as it was called" 1 \
	"$("$MEMTRACK" stat "$WORK/run" | grep -c "$WORK/replaced\$")"

# In a mount namespace the same path is another file there; the chroot has paths of its own.
cat >"$WORK/mounts" <<'END'
mkdir -p "$work/bound" && mount --bind "$work/libother.so" "$work/libfirst.so" || exit 77
case $1 in
bind) exec "$places" open "$work/libfirst.so" where ;;
chroot)
	for file in "$places" "$work/libother.so" $(ldd "$places" | grep -o '/[^ ]*') "$library"; do
		mkdir -p "$work/root${file%/*}" && cp "$file" "$work/root$file" || exit 1
	done
	mkdir -p "$work/root/proc" && mount -t proc proc "$work/root/proc" || exit 77
	exec chroot "$work/root" "$places" open "$work/libother.so" where
	;;
esac
END
work=$WORK
library=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
export work places library
for place in bind chroot; do
	track run unshare -m sh "$WORK/mounts" $place </dev/null >"$WORK/out" 2>"$WORK/err"
	status=$?
	if test "$status" -eq 77 || ! unshare -m true 2>/dev/null; then
		tap_skip "$place" "no right to mount"
		continue
	fi
	tap_equal "$place: ends well" 0 "$status"
	verified "$place" run
	right "$place" run 5
done
tap_done
