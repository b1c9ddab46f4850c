# SPDX-License-Identifier: MIT OR Apache-2.0
# memtrack's help, version and man page agree, and wrong usage is told apart from failure.
. "$MT_SRCDIR/tests/e2e/tool_lib.sh"
PAGE=$MT_SRCDIR/man/memtrack.1

options()
{
	grep -oE '(^|[^-a-zA-Z0-9])--[a-z][-a-z]*' | grep -oE -- '--[a-z][-a-z]*' | sort -u
}

gives "--help: ends with 0" 0 "$MEMTRACK" --help
cp out help
sed 's/\\-/-/g' "$PAGE" | options >page
{
	cat help
	for command in stat dump verify modules repair recompress; do
		tap_check "--help names $command" grep -q "^  $command " help >&3
		gives "$command --help: ends with 0" 0 "$MEMTRACK" "$command" --help >&3
		cat out
		cp out "help.$command"
		gives "$command -h: ends with 0" 0 "$MEMTRACK" "$command" -h >&3
		gives "help $command: ends with 0" 0 "$MEMTRACK" help "$command" >&3
		same_text "help $command is $command --help" "help.$command" out >&3
		tap_check "the man page has $command" grep -q "^\.SS $command\$" "$PAGE" >&3
	done
} 3>&1 >helps
tap_equal "no line of a help is wider than 80 columns" "" "$(awk 'length > 80' help helps)"
options <helps >options
tap_check "help names options" test "$(wc -l <options)" -ge 11
tap_equal "the man page has every option of the helps" "" "$(comm -23 options page)"
tap_equal "the helps have every option of the man page" "" "$(comm -13 options page)"
"$MEMTRACK" stat --json "$GOLDEN/frames.msgpack" | grep -o '"[a-z_]*":' | sort -u | tr -d '":' >keys
"$MEMTRACK" verify --json "$GOLDEN/frames.msgpack" | grep -o '"[a-z_]*":' | sort -u | tr -d '":' >>keys
missing=
for key in $(cat keys); do
	grep -qw "$key" "$PAGE" || missing="$missing $key"
done
tap_equal "the man page has every key of the JSON" "" "$missing"

gives "--version: ends with 0" 0 "$MEMTRACK" --version
tap_check "--version: names a version" grep -qE '^memtrack [0-9]+\.[0-9]+' out
gives "nothing: ends with 2" 2 "$MEMTRACK"
gives "unknown command: ends with 2" 2 "$MEMTRACK" frobnicate
tap_check "unknown command: is said" grep -q "frobnicate.*memtrack --help" err
gives "unknown option: ends with 2" 2 "$MEMTRACK" --frobnicate
gives "help of an unknown command: ends with 2" 2 "$MEMTRACK" help frobnicate
for command in stat dump verify modules; do
	gives "$command without a file: ends with 2" 2 "$MEMTRACK" "$command"
	gives "$command with two files: ends with 2" 2 "$MEMTRACK" "$command" a b
	gives "$command with an unknown option: ends with 2" 2 "$MEMTRACK" "$command" --frobnicate a
	tap_check "$command with an unknown option: is said" grep -q "memtrack $command.*frobnicate" err
done
for command in stat verify; do
	gives "$command with no threads: ends with 2" 2 "$MEMTRACK" "$command" --threads 0 a
	tap_check "$command with no threads: is said" grep -q "'0' is not a number from 1" err
done
cp "$GOLDEN/frames.msgpack" ./--help
gives "a file named --help, behind --" 0 "$MEMTRACK" dump -- --help
tap_check "a file named --help, behind --: is read" cmp out "$GOLDEN/frames.ndjson"
if command -v man >/dev/null && man --version >/dev/null 2>&1; then
	man --warnings -E UTF-8 -l "$PAGE" >out 2>err
	tap_check "the man page has no warnings" test ! -s err
fi
tap_done
