# SPDX-License-Identifier: MIT OR Apache-2.0
# The storms that each allocator goes through. Sourced.

# order_of_allocator NAME
order_of_allocator()
{
	TRACK_OPTIONS=
	storm "$1" -t 2 -n "$(long 200000 4000000)" swap
	storm "$1" -t 8 -n "$(long 200000 4000000)" mixed
	storm "$1" -t 64 -n "$(long 200000 4000000)" -s 2 -y 0 batch
	TRACK_OPTIONS=--order=strict
	storm "$1" -t 8 -n "$(long 150000 4000000)" swap
	storm "$1" -t 64 -n "$(long 150000 4000000)" -s 2 -y 0 mixed
	TRACK_OPTIONS=
	test "$1" != mimalloc || return 0 # it cannot do without its caches
	for bare_test in swap hand mixed; do
		storm "$1-bare" -t 4 -n "$(long 150000 4000000)" $bare_test
	done
}
