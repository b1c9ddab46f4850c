# SPDX-License-Identifier: MIT OR Apache-2.0
# Data goes one way: who may include whom. An include of ours is written from the root.
. "$MT_SRCDIR/tests/lint/lib.sh"

# Directory of the file, included header: 0 when allowed.
allowed()
{
	case $1:$2 in
	common/*:common/*) return 0 ;;
	preload/*:common/* | preload/*:preload/*) return 0 ;;
	bpf/*:bpf/* | bpf/*:common/bpf_event.h | bpf/*:common/kernel_*.h) return 0 ;;
	sidecar/*:common/* | sidecar/*:sidecar/* | sidecar/*:*.skel.h) return 0 ;;
	sidecar/*:bpf/*_event.h) return 0 ;;
	tools/*:common/* | tools/*:tools/*) return 0 ;;
	tests/* | bench/*) return 0 ;;
	esac
	return 1
}

bad=
for file in $(source_files '*.c' '*.h' '*.cc'); do
	case $file in
	*/*) ;;
	*) continue ;;
	esac
	for header in $(sed -n 's/^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*/\1/p' "$MT_SRCDIR/$file"); do
		allowed "$file" "$header" || bad="$bad$file includes $header
"
	done
done
tap_equal "layering: every include goes the allowed way" "" "$bad"

encoder=$(cd "$MT_SRCDIR" && grep -l 'include "common/frame_dec\|include "common/artifact_reader' \
	common/*enc*.[ch] common/artifact_writer.[ch] 2>/dev/null)
tap_equal "layering: the encoder does not know the decoder" "" "$encoder"
decoder=$(cd "$MT_SRCDIR" && grep -l 'include "common/frame_enc\|include "common/artifact_writer' \
	common/*dec*.[ch] common/artifact_reader.[ch] 2>/dev/null)
tap_equal "layering: the decoder does not know the encoder" "" "$decoder"
tap_done
