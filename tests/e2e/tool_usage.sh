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
# What is no artifact: it is said what it is, and what to do; nothing is made of it.
: >nothing
echo text >text
mkdir folder
for command in stat verify dump modules repair recompress; do
	case $command in
	re*) out=made ;;
	*) out= ;;
	esac
	for file in nothing /dev/null -; do
		gives "$command of an empty file ($file): fails" 1 "$MEMTRACK" $command $file $out
		tap_equal "$command of an empty file ($file): is said, and nothing else" "1 1 0" \
			"$(grep -c 'an empty file: nothing was recorded' err) $(wc -l <err) $(wc -c <out)"
	done
	gives "$command of a folder: fails" 1 "$MEMTRACK" $command folder $out
	tap_check "$command of a folder: says what to name" grep -q 'Is a directory; name a file in it' err
	gives "$command of text: fails" 1 "$MEMTRACK" $command text $out
	tap_check "$command of text: says what it reads" grep -q 'not a memtrack artifact.*memtrack-preload' err
	if test "$(id -u)" -ne 0; then
		chmod 0 text
		gives "$command of what may not be read: fails" 1 "$MEMTRACK" $command text $out
		tap_check "$command of what may not be read: is said" grep -q 'Permission denied; its owner' err
		chmod 600 text
	fi
	tap_check "$command: nothing was made" test ! -e made
done
if command -v zstd >/dev/null; then
	zstd -q text
	gives "stat of another file in zstd: is damage" 3 "$MEMTRACK" stat text.zst
	tap_check "stat of another file in zstd: that it may be one is said" grep -q 'another kind of file' err
fi
for command in stat verify; do
	gives "$command --wait of a device: ends with 2" 2 "$MEMTRACK" $command --wait /dev/null
done

cp "$GOLDEN/frames.msgpack" ./--help
gives "a file named --help, behind --" 0 "$MEMTRACK" dump -- --help
tap_check "a file named --help, behind --: is read" cmp out "$GOLDEN/frames.ndjson"
if command -v man >/dev/null && man --version >/dev/null 2>&1; then
	man --warnings -E UTF-8 -l "$PAGE" >out 2>err
	tap_check "the man page has no warnings" test ! -s err
fi
tap_done
