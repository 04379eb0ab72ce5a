package secret

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The minimum lengths of a secret. A secret shorter than leastWithin is hidden only where it stands
// alone. Otherwise each text that has it as a part of a word would be garbled. A secret shorter than
// leastAlone would be found everywhere.
const (
	leastWithin = 6
	leastAlone  = 3
	leastCut    = 4  // of the rest of a secret at a cut
	leastBegun  = 24 // of the beginning of a secret, where a server has cut it without a mark
)

// cut stands where a text was cut. The rest of a secret before it or after it is hidden as the whole
// secret would be.
const cut = "…"

// Cut returns the beginning of a text, with a mark where it ends. So a text that is too long to be
// searched is cut first, and the rest of a secret is still hidden.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + cut
}

// pattern is a secret in the form in which texts are searched for it.
type pattern struct {
	text   string
	folded string
	isURL  bool // or a key: some of its rests begin like texts that are not secret
	entire bool // is hidden only as a whole, see For
}

// patterns returns those of a text. There are two if a part of it may look like an escape: it is then escaped once more.
func patterns(text string, entire bool) (all []pattern) {
	if len(text) < leastAlone {
		return nil
	}
	all = append(all, newPattern(text, fold(text, letter), entire))
	if literal := fold(text, character); literal != all[0].folded {
		all = append(all, newPattern(text, literal, entire))
	}
	return all
}

func newPattern(text, folded string, entire bool) pattern {
	return pattern{text, folded, strings.Contains(folded, "://") || strings.Contains(folded, "-----"), entire}
}

func (p pattern) hide(text string) string {
	var b strings.Builder
	done, marked := 0, strings.Contains(text, cut)
	atCut := false // between the last cut and i there are only blanks
	for i := 0; i < len(text); {
		end := p.at(text, i)
		if end < 0 && atCut {
			end = p.rest(text, i)
		}
		if end < 0 {
			i++
			atCut = marked && (atCut && strings.IndexByte(" \t\r\n", text[i-1]) >= 0 || strings.HasSuffix(text[done:i], cut))
			continue
		}
		b.WriteString(text[done:i] + Hidden)
		i, done, atCut = end, end, false
	}
	return b.String() + text[done:]
}

// rest returns where the rest of a secret ends that begins at i, after a cut. It returns -1 if none
// begins there. The cut may have gone through an escape.
func (p pattern) rest(text string, i int) int {
	if len(p.folded) < leastWithin || p.entire {
		return -1
	}
	for broken := 0; broken < longestEscape && i+broken < len(text); broken++ {
		if end := p.restAt(text, i+broken); end >= 0 {
			return end
		}
		if strings.IndexByte(inEscapes, text[i+broken]) < 0 {
			break
		}
	}
	return -1
}

// restAt is rest where the cut has gone through no escape. Whichever rest it is, its first letters are those of the
// text: as many as make a beginning, or all up to the next cut. So the secret is searched for these letters once,
// however often it repeats itself.
func (p pattern) restAt(text string, i int) int {
	if p.isURL {
		return p.anyRestAt(text, i)
	}
	var first [leastBegun]byte
	found, isBegun := 0, false
	for at := i; at < len(text) && !isBegun; {
		if found >= leastCut && cutAt(text, at) >= 0 {
			isBegun = true
			break
		}
		c, size := letter(text, at)
		if c == 0 && found == 0 {
			return -1
		}
		if at += size; c != 0 {
			first[found] = c
			found++
		}
		isBegun = found == leastBegun
	}
	if found < leastCut {
		return -1
	}
	letters := string(first[:found])
	if isBegun {
		if from := strings.Index(p.folded[1:], letters); from >= 0 {
			return pattern{folded: p.folded[1+from:]}.begins(text, i)
		}
	}
	for ; found >= leastCut; found-- { // a rest that is shorter, as a whole
		if from := len(p.folded) - found; from > 0 && p.folded[from:] == letters[:found] {
			return pattern{folded: p.folded[from:]}.begins(text, i)
		}
	}
	return -1
}

// anyRestAt is restAt by trying all rests.
func (p pattern) anyRestAt(text string, i int) int {
	for from := 1; from <= len(p.folded)-leastCut; from++ {
		if end := (pattern{folded: p.folded[from:]}).begins(text, i); end >= 0 {
			return end
		}
	}
	return -1
}

// cutAt returns how far a cut is from i, if it is there or has gone through the escape that begins there; otherwise -1.
func cutAt(text string, i int) int {
	left := strings.Index(text[i:min(len(text), i+longestEscape+len(cut))], cut)
	if left == 0 || left > 0 && strings.IndexByte(`%\&`, text[i]) >= 0 {
		return left
	}
	return -1
}

// at returns where the secret ends that begins at i. It returns -1 if none begins there.
func (p pattern) at(text string, i int) int {
	if len(p.folded) < leastWithin {
		end := i + len(p.text)
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		if !strings.HasPrefix(text[i:], p.text) || inWord(before) {
			return -1
		}
		if after, _ := utf8.DecodeRuneInString(text[end:]); inWord(after) {
			return -1
		}
		return end
	}
	switch c := text[i]; { // at most places no secret begins
	case c == p.text[0]:
		if strings.HasPrefix(text[i:], p.text) {
			return i + len(p.text)
		}
	case c != '%' && c != '\\' && c != '&' && lower(c) != p.folded[0]:
		return -1
	}
	return p.begins(text, i)
}

// begins returns where the secret ends that begins at i in any form. It returns -1 if none begins there.
func (p pattern) begins(text string, i int) int {
	for found := 0; i < len(text); {
		if found >= leastCut && !p.entire {
			if left := cutAt(text, i); left >= 0 {
				return i + left
			}
		}
		c, size := letter(text, i)
		switch {
		case c != 0 && c != p.folded[found] && found >= leastBegun && !p.public():
			return i
		case c == 0 && found == 0, c != 0 && c != p.folded[found]:
			return -1
		case c != 0:
			found++
		}
		if i += size; found == len(p.folded) {
			return i
		}
		if i == len(text) && found >= leastBegun && !p.public() {
			return i
		}
	}
	return -1
}

// public reports whether the beginning of a secret is not hidden: it is like texts that are not secret, such as a URL with the
// name of a server, or it would tell who wrote it that it is right.
func (p pattern) public() bool {
	return p.entire || strings.Contains(p.folded, "://") || strings.HasPrefix(p.folded, "-----")
}

// longestEscape is the length of the longest escape, such as \u00e4 and &quot;. An escape goes on with the characters inEscapes.
const (
	longestEscape = 6
	inEscapes     = "0123456789abcdefABCDEFuxX#;glmopqst"
)

// entities are the characters that HTML and XML escape by a name.
var entities = map[string]byte{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// fold returns a text without the characters that a text loses or gains where it is quoted, escaped,
// or broken into lines. read reads one character of the text.
func fold(text string, read func(text string, i int) (c byte, size int)) string {
	var b []byte
	for i := 0; i < len(text); {
		c, size := read(text, i)
		if c != 0 {
			b = append(b, c)
		}
		i += size
	}
	return string(b)
}

// letter reads one character. It returns a capital letter as a small one. It decodes a character that
// is escaped as in URLs, in Go, in JSON, or in HTML and XML. It returns 0 for characters that do not count: blanks, line
// ends, backslashes, and the plus sign, which is a blank in the query of a URL.
func letter(text string, i int) (c byte, size int) {
	for _, escape := range []struct {
		mark   string
		digits int
	}{{"%", 2}, {`\x`, 2}, {`\u`, 4}} {
		if from, end := i+len(escape.mark), i+len(escape.mark)+escape.digits; strings.HasPrefix(text[i:], escape.mark) && end <= len(text) {
			if v, err := strconv.ParseUint(text[from:end], 16, 8); err == nil {
				return plain(byte(v)), end - i
			}
		}
	}
	if text[i] == '&' {
		if c, size, ok := entity(text[i:min(len(text), i+longestEscape)]); ok {
			return plain(c), size
		}
	}
	if i+1 < len(text) && text[i] == '\\' && strings.IndexByte("nrt", text[i+1]) >= 0 {
		return 0, 2
	}
	return plain(text[i]), 1
}

// entity reads a character that is escaped as in HTML, by its name or its number.
func entity(text string) (c byte, size int, ok bool) {
	name, _, closed := strings.Cut(text[1:], ";")
	if !closed {
		return 0, 0, false
	}
	size = len(name) + len("&;")
	if number, is := strings.CutPrefix(name, "#"); is {
		base := 10
		if digits := strings.TrimLeft(number, "xX"); digits != number {
			number, base = digits, 16
		}
		v, err := strconv.ParseUint(number, base, 8)
		return byte(v), size, err == nil
	}
	c, ok = entities[name]
	return c, size, ok
}

// character reads one character as letter does, but decodes no escape.
func character(text string, i int) (c byte, size int) { return plain(text[i]), 1 }

func plain(c byte) byte {
	if c == '\\' || c == ' ' || c == '+' || c >= '\t' && c <= '\r' {
		return 0
	}
	return lower(c)
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
