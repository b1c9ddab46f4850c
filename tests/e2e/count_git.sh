# SPDX-License-Identifier: MIT OR Apache-2.0
# git log and git fsck on a repository equal the independent count.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
need_command git
HOME=$WORK
GIT_CONFIG_NOSYSTEM=1
GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
GIT_PAGER="cat"
export HOME GIT_CONFIG_NOSYSTEM GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_PAGER
mkdir "$WORK/repo"
cd "$WORK/repo" || exit 1
git init -q .
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	seq "$i" "$((i * 40))" >"file$((i % 4))"
	git add .
	git commit -q -m "step $i"
done
git repack -q -a -d
seq 100 >loose
git add .
git commit -q -m "one more"
counted "git log" git log -p --stat
tap_equal "git log: all commits are told" "16" "$(grep -c '^commit ' "$WORK/out")"
counted "git fsck" git fsck --full --strict
tap_done
