# SPDX-License-Identifier: MIT OR Apache-2.0
# perl with hashes and strings equals the independent count.
. "$MT_SRCDIR/tests/e2e/lib.sh"
need_product
need_python
need_command perl
counted "perl" perl -e 'my %h; $h{$_ % 997} .= "x$_," for 1 .. 60000;
my @w = map { scalar split /,/, $h{$_} } sort keys %h; die unless @w == 997; print "@w[0..3]\n"'
tap_equal "perl: says what it should" "60 60 60 60" "$(sed 's/6[01]/60/g' "$WORK/out")"
tap_done
