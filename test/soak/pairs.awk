# SPDX-License-Identifier: Apache-2.0
#
# A pairwise table, greedily: reads lines "KEY VALUE VALUE..." and prints rows
# "KEY=VALUE ..." in which any two values of any two keys meet at least once.
# The same in every run.  Called by matrix.sh.

/^[ \t]*(#|$)/ { next }

{
	nr++
	key[nr] = $1
	values[nr] = NF - 1
	for (v = 1; v < NF; v++)
		value[nr, v] = $(v + 1)
}

# How many pairs a value adds to the part of the row that is there.
function gain(f, v,    g, n) {
	for (g = 1; g <= nr; g++)
		if (g != f && row[g] && !((f, v, g, row[g]) in met))
			n++
	return n + 0
}

function fill(    k, f, v, best, at, order, swap, total) {
	for (f = 1; f <= nr; f++) {
		row[f] = 0
		order[f] = f
	}
	for (k = nr; k > 1; k--) {
		f = 1 + int(rand() * k)
		swap = order[k]
		order[k] = order[f]
		order[f] = swap
	}
	for (k = 1; k <= nr; k++) {
		f = order[k]
		best = -1
		for (v = 1; v <= values[f]; v++) {
			at = gain(f, v) + rand() / 2
			if (at > best) {
				best = at
				row[f] = v
			}
		}
	}
	for (f = 1; f <= nr; f++)
		for (k = f + 1; k <= nr; k++)
			total += !((f, row[f], k, row[k]) in met)
	return total
}

END {
	srand(1)
	for (f = 1; f <= nr; f++)
		for (g = f + 1; g <= nr; g++)
			left += values[f] * values[g]
	while (left > 0) {
		most = 0
		for (try = 0; try < 20; try++) {
			got = fill()
			if (got > most) {
				most = got
				for (f = 1; f <= nr; f++)
					chosen[f] = row[f]
			}
		}
		if (!most)
			continue
		for (f = 1; f <= nr; f++) {
			printf "%s=%s%s", key[f], value[f, chosen[f]],
				f < nr ? " " : "\n"
			for (g = 1; g <= nr; g++)
				met[f, chosen[f], g, chosen[g]] = 1
		}
		left -= most
	}
}
