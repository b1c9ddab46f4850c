# SPDX-License-Identifier: MIT OR Apache-2.0
# Options and their variables are told the same in all places: --help, the man page, the README and
# docs/options.md. None names one that does not exist.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
page=$MT_SRCDIR/man/memtrack-preload.1

"$LAUNCHER" --help | sed -n 's/^  [-a-zA-Z, ]* --\([a-z-]*\).*/--\1/p' | sort >"$WORK/help"
tap_check "options: --help names some" test "$(wc -l <"$WORK/help")" -gt 10

sidecar=$(find_built memtrack-sidecar)
"$sidecar" --list-options >"$WORK/list"
cut -f 1 "$WORK/list" | sort >"$WORK/wanted"
cut -f 2 "$WORK/list" | grep -v '^-$' | sort >"$WORK/variables"
tap_equal "options: --help names all that there are, and no other" "" \
	"$(comm -3 "$WORK/wanted" "$WORK/help")"

sed 's/\\-/-/g' "$page" >"$WORK/page"
sed -n '/^\.SH OPTIONS/,/^\.SH MANUAL/s/^\.BR .*--\([a-z-]*\).*/--\1/p' "$WORK/page" | sort >"$WORK/page.options"
tap_equal "options: the man page lists them all, and no other" "" "$(comm -3 "$WORK/wanted" "$WORK/page.options")"
grep -o 'MEMTRACK_[A-Z_]*' "$WORK/page" | sort -u >"$WORK/page.variables"
tap_equal "options: the man page names each variable" "" "$(comm -23 "$WORK/variables" "$WORK/page.variables")"

# table FILE: "option variable default", of the lines of its table.
table()
{
	sed -n 's/^| .*`--\([a-z-]*\).*` | \(`MEMTRACK_[A-Z_]*`\)\{0,1\} *|\([^|]*\)| .*/--\1 \2 \3/p' "$1" | tr -d '`'
}

for file in README.md docs/options.md; do
	table "$MT_SRCDIR/$file" >"$WORK/table"
	awk '{ print $1 }' "$WORK/table" | sort >"$WORK/table.options"
	tap_equal "options: $file lists them all, and no other" "" "$(comm -3 "$WORK/wanted" "$WORK/table.options")"
	awk '$2 ~ /^MEMTRACK_/ { print $1 "\t" $2 }' "$WORK/table" | sort >"$WORK/table.variables"
	tap_equal "options: $file gives each its variable" "" \
		"$(grep -v -- '-$' "$WORK/list" | sort | comm -3 - "$WORK/table.variables")"
	"$LAUNCHER" --help | awk '{ joins = sub(/^                     */, " "); printf "%s%s", joins ? "" : "\n", $0 }' |
		sed -n 's/^  .*--\([a-z-]*\)=.*(default: \([^)./ ]*\))$/--\1 \2/p' | sort >"$WORK/defaults"
	awk '$2 ~ /^MEMTRACK_/ && $3 != "0" && $3 !~ /:$/ { print $1, $3 }' "$WORK/table" | grep -v ' current$' |
		sort >"$WORK/table.defaults"
	tap_equal "options: $file gives the defaults of --help" "" "$(comm -3 "$WORK/defaults" "$WORK/table.defaults")"
done

# What the sources read from the environment, a user is told of.
grep -rhoE '"MEMTRACK_[A-Z_]+"' "$MT_SRCDIR/preload" "$MT_SRCDIR/sidecar" "$MT_SRCDIR/tools" --include='*.[ch]' |
	tr -d '"' | sort -u | grep -v -e '_$' -e '^MEMTRACK_SAVED_' >"$WORK/read"
grep -o 'MEMTRACK_[A-Z_]*' "$MT_SRCDIR/docs/options.md" | sort -u >"$WORK/told"
tap_equal "options: docs/options.md names each variable that is read ($(wc -l <"$WORK/read"))" "" \
	"$(comm -23 "$WORK/read" "$WORK/told")"
tap_equal "options: it names none that is not" "MEMTRACK_SAVED_ MEMTRACK_SESSION" \
	"$(comm -13 "$WORK/read" "$WORK/told" | paste -sd' ' -)"
tap_done
