# SPDX-License-Identifier: MIT OR Apache-2.0
# What every file keeps to: its licence line, its length, no notes to oneself, no trailing blanks.
. "$MT_SRCDIR/tests/lint/lib.sh"
cd "$MT_SRCDIR" || exit 1

missing=
for file in $(source_files '*.[ch]' '*.cc' '*.sh' '*.py' '*.mk' '*.m4' '*.am' '*.ac' '*.in' '*.map' \
	'*.[0-9]' 'bootstrap' 'quickstart'); do
	head -n 5 "$file" | grep -q 'SPDX-License-Identifier: MIT OR Apache-2.0' || missing="$missing $file"
done
tap_equal "files: each names its licence in its first lines" "" "$missing"

long=
for file in $(source_files '*.c' '*.cc'); do
	lines=$(wc -l <"$file")
	test "$lines" -le 600 || long="$long $file:$lines"
done
tap_equal "files: no C file is over 600 lines" "" "$long"

long=
for file in $(source_files '*.h'); do
	lines=$(wc -l <"$file")
	test "$lines" -le 250 || long="$long $file:$lines"
done
tap_equal "files: no header is over 250 lines" "" "$long"

# The patterns are written so that they do not find themselves.
notes=$(source_files '*.[ch]' '*.cc' '*.sh' '*.py' '*.mk' '*.m4' '*.am' '*.ac' '*.in' '*.md' '*.[0-9]' |
	xargs grep -nE 'TO[D]O|FIX[M]E|(^|[^X])XX[X]([^X]|$)|not implemente[d]|/wor[k]/' /dev/null)
tap_equal "files: no note to oneself, no path of one machine" "" "$notes"

blanks=$(source_files '*.[ch]' '*.cc' '*.sh' '*.py' '*.mk' '*.am' '*.ac' '*.map' |
	xargs grep -nE '[ 	]$' /dev/null)
tap_equal "files: no blanks at the end of a line" "" "$blanks"
tap_done
