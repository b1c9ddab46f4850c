# SPDX-License-Identifier: MIT OR Apache-2.0
# The launcher: odd places (kind 17), the environment that the command sees, names of the artifact.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
library=$MT_BUILDDIR/preload/.libs/libmemtrack-preload.so
sidecar=$(find_built memtrack-sidecar)

# What env(1) prints differs by our two variables; _ is the shell's own.
env | grep -v '^_=' | sort >"$WORK/plain"
track run env | grep -v '^_=' | sort >"$WORK/tracked"
tap_equal "the environment has two variables more" "LD_PRELOAD MEMTRACK_SESSION" \
	"$(diff "$WORK/plain" "$WORK/tracked" | sed -n 's/^> \([A-Z_]*\)=.*/\1/p' | tr '\n' ' ' | sed 's/ $//')"
tap_equal "the environment lacks none" 0 "$(diff "$WORK/plain" "$WORK/tracked" | grep -c '^<')"

# Nor is a name lost that is none of a shell's, or a thing added that a shell would.
odd_environment()
{
	env -i 'a.b=1' '1x=2' 'INPUT_MY-LEVEL=3' 'BASH_FUNC_f%%=() { :; }' LD_AUDIT= MEMTRACK_FOLLOW=1 IFS=x "$@"
}
odd_environment env >"$WORK/plain"
rm -f "$WORK/run"
odd_environment "$LAUNCHER" -q -o "$WORK/run" -- env 2>"$WORK/err" | grep -v -e '^LD_PRELOAD=' -e '^MEMTRACK_SESSION=' \
	>"$WORK/tracked"
tap_equal "names that no shell takes, in their order" "$(cat "$WORK/plain")" "$(cat "$WORK/tracked")"

# An installation in a place that LD_PRELOAD cannot name.
odd="$WORK/a b:c\$d"
mkdir -p "$odd/bin" "$odd/libexec/memtrack" "$odd/lib/memtrack"
cp "$LAUNCHER" "$odd/bin"
cp "$sidecar" "$odd/libexec/memtrack"
cp "$library" "$odd/lib/memtrack"
rm -f "$WORK/run"
bounded 60 "$odd/bin/memtrack-preload" -q -o "$WORK/run" -- "$PROGRAMS/blocks" 1000 12345 2>"$WORK/err"
tap_equal "installed under a path with blank, colon and dollar" "0 1000" "$? $(count_size run 12345)"
tap_check "installed there: the loader has nothing to say" test ! -s "$WORK/err"

ln -s "$odd/bin/memtrack-preload" "$WORK/link to it"
rm -f "$WORK/run"
bounded 60 "$WORK/link to it" -q -o "$WORK/run" -- "$PROGRAMS/blocks" 1000 12345 2>"$WORK/err"
tap_equal "installed there, called by a link" "0 1000" "$? $(count_size run 12345)"

rm -f "$odd/libexec/memtrack/memtrack-sidecar"
bounded 60 "$odd/bin/memtrack-preload" true 2>"$WORK/err"
status=$?
if test "$status" -eq 0; then
	tap_skip "without a sidecar: it says so" "memtrack is installed on this machine"
else
	tap_equal "without a sidecar: our own failure" 125 "$status"
	tap_check "without a sidecar: it says so" grep -q memtrack-sidecar "$WORK/err"
fi

# An earlier session of ours in the environment is no reason to be loaded twice.
session=$(LD_PRELOAD=$library MEMTRACK_SESSION=1:0:0: "$LAUNCHER" -q -o "$WORK/twice" -- \
	sh -c 'echo "$LD_PRELOAD"' 2>"$WORK/err")
tap_equal "ours is named once" "$library" "$session"

# Names. The command tells its number, and a file of the next run's name cannot be foreseen: so the
# number is given again by a PID namespace, in which each run's command has the same one.
mkdir "$WORK/names"
cd "$WORK/names" || exit 1
if unshare -pf --mount-proc true 2>/dev/null; then
	for run in 1 2 3; do
		unshare -pf --mount-proc "$LAUNCHER" true 2>>"$WORK/names.err"
	done
	tap_equal "the same number three times: three files" 3 "$(ls | grep -c '\.MemtrackArtifact\.msgpack$')"
	tap_equal "the same number three times: they are numbered" 1 \
		"$(ls | grep -c -- '^[0-9]*-3\.MemtrackArtifact\.msgpack$')"
	tap_equal "the same number three times: it is said" 2 "$(grep -c 'was taken' "$WORK/names.err")"
else
	tap_skip "the same number three times" "no right to make a PID namespace"
fi
before=$(ls)
"$LAUNCHER" -q no-such-command 2>"$WORK/err"
tap_equal "a command that is not there leaves no file" "127 $before" "$? $(ls)"
for name in taken link; do
	echo "of another day" >taken
	ln -sf taken link
	"$LAUNCHER" -q --force -o $name no-such-command 2>"$WORK/err"
	tap_equal "a command that is not there leaves the file that it was to replace ($name)" \
		"127 of another day" "$? $(cat taken)"
done
chmod 640 taken
"$LAUNCHER" -q --force -o link -- true 2>"$WORK/err"
tap_equal "a run that began replaces it: through the link, and with its mode" "0 link 640" \
	"$("$MEMTRACK" verify taken >"$WORK/out"; echo $?) $(test -h link && echo link) $(stat -c %a taken)"
tap_equal "nothing is left beside it" 0 "$(ls -A | grep -c '^\.memtrack-')"

# Two runs that name one file: the second is told, and the first has it whole.
track_one() { "$LAUNCHER" -q --force -o one "$@"; }
track_one sh -c ': >ready; until test -e go; do sleep 0.01; done' &
wait_for 10 test -e ready
track_one true 2>"$WORK/err"
tap_equal "a file that another run is writing: our own failure" "125 1" "$? $(grep -c 'another run' "$WORK/err")"
: >go
wait $!
tap_equal "a file that another run is writing: is that run's" "0 0" "$? $("$MEMTRACK" verify one >"$WORK/out" 2>&1; echo $?)"
track_one true 2>"$WORK/err"
tap_equal "a file that another run has written: may be replaced" 0 $?
cd "$WORK" || exit 1

# One run in another: the inner one has the blocks, and the outer one says why it has not.
if test "$(id -u)" -eq 0 && built_with_bpf; then
	for option in --force --no-follow-env; do
		bounded 60 "$LAUNCHER" --force $option -o "$WORK/outer" -- \
			"$LAUNCHER" --force -o "$WORK/inner" -- "$PROGRAMS/blocks" 1000 12345 2>"$WORK/err"
		tap_equal "a run in a run ($option): ends well, and each block is in the inner one" "0 0 1000" \
			"$? $(count_size outer 12345) $(count_size inner 12345)"
		tap_check "a run in a run ($option): the outer one says why" grep -q "untracked: pid [0-9]* $PROGRAMS/blocks: another run" "$WORK/err"
	done
else
	tap_skip "a run in a run" "no eBPF: the kernel does not tell why images run untracked"
fi

# wrong TEXT OPTION...: refused before the command starts, with a line that names the option.
wrong()
{
	text=$1
	shift
	rm -f "$WORK/started"
	"$LAUNCHER" "$@" touch "$WORK/started" >"$WORK/out" 2>"$WORK/err"
	tap_equal "$text: our own failure, one line, nothing started" "125 1 0 0" \
		"$? $(lines_said "$WORK/err") $(wc -c <"$WORK/out") $(ls "$WORK" | grep -c '^started$')"
	tap_check "$text: the line names it" grep -q -- "${1%%=*}" "$WORK/err"
}

wrong "an option that does not exist" --bogus
wrong "a size that is none" --buffer-size=lots
wrong "a size that is too small" --buffer-size=1K
wrong "a choice that is none" --on-full=maybe
wrong "a level that is too high" --level=99
wrong "a level that zstd alone knows" --level=0
wrong "standard output as the file" --output=/dev/stdout
wrong "a descriptor as the file" --output=/dev/fd/1
wrong "a flag with a value" --force=yes
for flag in FORCE QUIET NO_MMAP_EVENTS NO_FOLLOW_ENV REQUIRE_COMPLETE AS_ROOT; do
	env MEMTRACK_$flag=maybe "$LAUNCHER" -o "$WORK/flag" true 2>"$WORK/err"
	tap_equal "MEMTRACK_$flag=maybe: our own failure, and what it takes is said" "125 1" \
		"$? $(grep -c "^memtrack: MEMTRACK_$flag: 'maybe' is none of 1, yes" "$WORK/err")"
done

# eBPF that is demanded and cannot be had: once, and in the user's words.
mkdir -p "$WORK/nothing"
without_bpf="unshare -m sh -c 'mount --bind \"$WORK/nothing\" /sys/kernel/btf && exec \"\$@\"' -"
test "$(id -u)" -eq 0 && built_with_bpf && test -d /sys/kernel/btf || without_bpf=
if test -z "$without_bpf" || eval "$without_bpf" true 2>/dev/null; then
	eval "$without_bpf" '"$LAUNCHER"' --bpf=full -o '"$WORK/full"' true 2>"$WORK/err"
	tap_equal "--bpf=full without eBPF: our own failure, one line" "125 1" "$? $(wc -l <"$WORK/err")"
	tap_equal "--bpf=full without eBPF: said once, by the option's name" "1 0" \
		"$(grep -c -- '--bpf=full' "$WORK/err") $(grep -cE 'vma_iter|demanded|had.*had' "$WORK/err")"
else
	tap_skip "--bpf=full without eBPF" "no right to make a mount namespace"
fi
tap_equal "no command" 125 "$("$LAUNCHER" 2>/dev/null; echo $?)"
MEMTRACK_LEVEL=x "$LAUNCHER" true 2>"$WORK/err"
tap_equal "a variable that is wrong" 125 $?
tap_check "a variable that is wrong is named" grep -q MEMTRACK_LEVEL "$WORK/err"

MEMTRACK_LEVEL=x "$LAUNCHER" -q --level=2 -o "$WORK/level" true 2>"$WORK/err"
tap_equal "a variable that is wrong, and overridden: nothing to say" "0 0" "$? $(wc -c <"$WORK/err")"
ln -s nowhere "$WORK/dangling"
for option in --order=fast --force; do
	"$LAUNCHER" $option -o "$WORK/dangling" true 2>"$WORK/err"
	tap_equal "a link that leads nowhere as the file ($option): our own failure" "125 1 1" \
		"$? $(lines_said "$WORK/err") $(grep -c 'leads nowhere' "$WORK/err")"
done
tap_check "a link that leads nowhere: nothing is made where it leads" test ! -e "$WORK/nowhere"

track run sh -c 'echo "${MEMTRACK_SESSION##*:}"; ls -ld "${MEMTRACK_SESSION##*:}" | cut -c 1-10' >"$WORK/out" 2>/dev/null
tap_equal "the session's folder is private" "drwx------" "$(tail -n 1 "$WORK/out")"
folder=$(head -n 1 "$WORK/out")
tap_check "the session's folder is gone" test ! -e "$folder"

# What a killed run left is removed by the next; what may be in the making is not.
mkdir "${folder%-*}-stale-$$" "${folder%-*}-young-$$"
touch -d '2 minutes ago' "${folder%-*}-stale-$$"
track run true
tap_check "an old session's folder is removed" test ! -e "${folder%-*}-stale-$$"
tap_check "a young session's folder is left alone" rmdir "${folder%-*}-young-$$"
tap_done
