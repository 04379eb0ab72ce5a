package report

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// ellipsis stands in place of text for which a narrow terminal has no room.
const ellipsis = '…'

// cells returns how many cells of a terminal a text takes. Characters of East Asia and emoji take two cells. Marks
// that combine with the character before them take none. The text must come from Line, so that it contains no
// control characters.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r == 0xFE0F: // asks for the picture form of the character before it, which takes two cells
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me), r >= 0x1160 && r <= 0x11FF: // marks; vowels and ends of a Hangul syllable
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cutEnd shortens a text to n cells; an ellipsis stands for its end.
func cutEnd(s string, n int) string {
	if cells(s) <= n {
		return s
	}
	return head(s, n-1) + string(ellipsis)
}

// cutWords shortens a text to n cells, between words if it can.
func cutWords(s string, n int) string {
	short := cutEnd(s, n)
	if cut, found := strings.CutSuffix(short, string(ellipsis)); found && s[len(cut)] != ' ' {
		if i := strings.LastIndexByte(cut, ' '); i > 0 {
			return cut[:i] + string(ellipsis)
		}
	}
	return short
}

// cutMiddle shortens a text to n cells; an ellipsis stands for its middle. Names often differ at their end.
func cutMiddle(s string, n int) string {
	if cells(s) <= n {
		return s
	}
	return head(s, n-1-(n-1)/2) + string(ellipsis) + tail(s, (n-1)/2)
}

// head returns as much of the start of a text as n cells hold.
func head(s string, n int) string {
	for i, r := range s {
		if n -= cellsOf(r); n < 0 {
			return strings.TrimRight(whole(s[:i], r), " ")
		}
	}
	return s
}

// whole removes the last character of a head if the next character is a part of it.
func whole(s string, next rune) string {
	if next != 0xFE0F {
		return s
	}
	r := []rune(s)
	return string(r[:max(len(r)-1, 0)])
}

// tail returns as much of the end of a text as n cells hold. It does not begin with a mark.
func tail(s string, n int) string {
	r := []rune(s)
	from := len(r)
	for i := len(r) - 1; i >= 0; i-- {
		if n -= cellsOf(r[i]); n < 0 {
			break
		}
		if cellsOf(r[i]) > 0 && r[i] != 0xFE0F {
			from = i
		}
	}
	return string(r[from:])
}
