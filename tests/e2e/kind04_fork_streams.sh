# SPDX-License-Identifier: MIT OR Apache-2.0
# Kind 4: fork without exec, by fork() and by the raw system call: each child has a stream of its
# own with exact counts, its parent's is undisturbed, frees of inherited blocks are known.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
children=$(long 20 50)
counted "children that take what they should" "$PROGRAMS/forker" "$children"
dump counted >"$WORK/all"
wrong=
k=1
while test "$k" -le "$children"; do
	# One child by fork and one by clone, each with a pid of its own.
	got=$(sed -n "s/^{\"pid\":\([0-9]*\),.*\"type\":\"Malloc\",\"size\":$((100000 + k))[,}].*/\1/p" "$WORK/all" |
		sort | uniq -c | awk -v k="$k" '$1 == k { right++ } END { print right + 0, NR }')
	test "$got" = "2 2" || wrong="$wrong $k:$got"
	k=$((k + 1))
done
tap_equal "child k of either kind has exactly its k blocks" "" "$wrong"
tap_equal "the parent has its own" "$((children * 20))" "$(grep -c '"type":"Malloc","size":7[,}]' "$WORK/all")"
tap_done
