// Package nearest finds the word that somebody probably meant to type.
package nearest

import "strings"

// To returns the candidate with the smallest edit distance, or "" if even that is large for its length.
func To(found string, candidates []string) string {
	best, bestDistance := "", 1+min(2, len(found)/3)
	for _, c := range candidates {
		if d := distance(strings.ToLower(found), c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete, replace, or swap with their neighbour, that turns a into b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 { // no key is that long, and the cost is the product of the lengths
		return 64
	}
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
