package secret

import (
	"slices"
	"strings"
)

// index finds the few patterns of a list that can be in a text. A secret of many lines has thousands of patterns, and to search
// a text for each of them would take seconds.
type index struct {
	list  []pattern
	short []int                    // places of the patterns that are hidden only where they stand alone
	begin map[[leastCut]byte][]int // places of the others, by their first letters
}

func newIndex(list []pattern) *index {
	x := &index{list: slices.Clone(list), begin: map[[leastCut]byte][]int{}}
	for i, p := range x.list {
		if key, ok := firstLetters(p.folded, 0, character); ok && len(p.folded) >= leastWithin {
			x.begin[key] = append(x.begin[key], i)
		} else {
			x.short = append(x.short, i)
		}
	}
	return x
}

// in returns the patterns that can be in a text: of each other one, not even the first letters are there, nor any letters that
// follow a cut.
func (x *index) in(text string) (some []pattern) {
	picked := make([]bool, len(x.list))
	pick := func(places []int) {
		for _, i := range places {
			picked[i] = true
		}
	}
	pick(x.short)
	reads := []func(string, int) (byte, int){letter}
	if strings.ContainsAny(text, `%\&`) { // what begins an escape may also stand for itself
		reads = append(reads, character)
	}
	for i := range len(text) {
		for _, read := range reads {
			if key, ok := firstLetters(text, i, read); ok {
				pick(x.begin[key])
			}
		}
	}
	rests := afterCuts(text)
	for i, p := range x.list {
		if picked[i] || !p.entire && slices.ContainsFunc(rests, func(letters string) bool { return strings.Contains(p.folded, letters) }) {
			some = append(some, p)
		}
	}
	return some
}

// firstLetters returns the first letters that begin at i. A secret begins with a letter that counts.
func firstLetters(text string, i int, read func(text string, i int) (c byte, size int)) (first [leastCut]byte, ok bool) {
	for found := 0; i < len(text); {
		c, size := read(text, i)
		switch {
		case c == 0 && found == 0:
			return first, false
		case c != 0:
			first[found] = c
			if found++; found == leastCut {
				return first, true
			}
		}
		i += size
	}
	return first, false
}

// afterCuts returns the letters with which the rest of a secret may begin after each of the cuts.
func afterCuts(text string) (all []string) {
	seen := map[string]bool{}
	for {
		_, after, found := strings.Cut(text, cut)
		if !found {
			return all
		}
		text = after
		rest := strings.TrimLeft(text, " \t\r\n")
		for broken := 0; broken < longestEscape && broken < len(rest); broken++ {
			if key, ok := firstLetters(rest, broken, letter); ok && !seen[string(key[:])] {
				seen[string(key[:])] = true
				all = append(all, string(key[:]))
			}
			if strings.IndexByte(inEscapes, rest[broken]) < 0 {
				break
			}
		}
	}
}
