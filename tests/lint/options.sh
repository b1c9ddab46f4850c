# SPDX-License-Identifier: MIT OR Apache-2.0
# Options are told the same in three places: --help, the man page and the README.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
page=$MT_SRCDIR/man/memtrack-preload.1

options()
{
	grep -oE '(^|[^-a-zA-Z0-9])--[a-z][-a-z]*[a-z]' | grep -oE -- '--[a-z][-a-z]*[a-z]' | sort -u
}

"$LAUNCHER" --help 2>&1 | options >"$WORK/help"
tap_check "options: --help names some" test "$(wc -l <"$WORK/help")" -gt 10

for option in output force buffer-size max-buffers max-memory max-file-size on-full max-wait order \
	workers level codec bpf no-mmap-events no-follow-env require-complete as-root help version; do
	echo "--$option"
done | sort >"$WORK/wanted"
tap_equal "options: --help names every option there is" "" "$(comm -23 "$WORK/wanted" "$WORK/help")"

if test -f "$page"; then
	sed 's/\\-/-/g' "$page" | options >"$WORK/page"
	tap_equal "options: the man page names those of --help" "" "$(comm -23 "$WORK/help" "$WORK/page")"
else
	tap_fail "options: there is a man page"
fi
options <"$MT_SRCDIR/README.md" >"$WORK/readme"
tap_equal "options: the README names those of --help" "" "$(comm -23 "$WORK/help" "$WORK/readme")"
tap_done
