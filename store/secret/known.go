package secret

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Known are the secrets of one process. The zero value is ready; several goroutines may use it. A nil one knows none.
type Known struct {
	mu     sync.Mutex
	fixed  []pattern // those of URLs
	issued []pattern // the last that were issued
}

// issuedMost: a token for each of the connections of some passes; a server that quotes an older one is unheard of.
const issuedMost = 64

// The least lengths of a secret. A shorter one is hidden only where it stands alone, or each text with it as a part of
// a word would be garbled; and the shortest would be found everywhere.
const (
	leastWithin = 6
	leastAlone  = 3
)

// pattern is a secret as it is looked for.
type pattern struct {
	text   string
	folded string
}

// AddURL adds what is secret in a URL, which may be malformed.
func (k *Known) AddURL(raw string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range ofURL(raw) {
		k.fixed = added(k.fixed, s)
	}
}

// Issue adds a password that was given out, such as a token. The newest ones are kept.
func (k *Known) Issue(password string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.issued = added(k.issued, password)
	if over := len(k.issued) - issuedMost; over > 0 {
		k.issued = slices.Delete(k.issued, 0, over)
	}
}

// Add adds a secret that is given out, also as it reads in base64, such as in a header. It is kept as long as the process
// lives.
func (k *Known) Add(value string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, form := range forms(value) {
		k.fixed = added(k.fixed, form)
	}
}

// forms are a value, and what of its base64 does not depend on what stands before and after it there: three bytes make
// four letters, so there are three.
func forms(value string) []string {
	all := []string{value}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := enc.EncodeToString([]byte(strings.Repeat("x", before) + value))
			from := (8*before + 5) / 6 // the letters that hold bits of what is before
			to := (before + len(value)) * 8 / 6
			if to-from >= leastWithin {
				all = append(all, text[from:to])
			}
		}
	}
	return all
}

func added(list []pattern, text string) []pattern {
	if len(text) < leastAlone || slices.ContainsFunc(list, func(p pattern) bool { return p.text == text }) {
		return list
	}
	list = append(list, pattern{text, fold(text, letter)})
	// What looks like an escape may be part of the secret, and is then escaped once more.
	if literal := fold(text, character); literal != list[len(list)-1].folded {
		list = append(list, pattern{text, literal})
	}
	return list
}

// Hide hides what is known, and what looks like a credential.
func (k *Known) Hide(text string) string {
	if text == "" {
		return ""
	}
	if k != nil {
		k.mu.Lock()
		list := slices.Concat(k.fixed, k.issued)
		k.mu.Unlock()
		// A longer one first: another may be a part of it.
		slices.SortFunc(list, func(a, b pattern) int { return len(b.text) - len(a.text) })
		for _, p := range list {
			text = p.hide(text)
		}
	}
	return Hide(text)
}

func (p pattern) hide(text string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); {
		end := p.at(text, i)
		if end < 0 {
			i++
			continue
		}
		b.WriteString(text[done:i] + Hidden)
		i, done = end, end
	}
	return b.String() + text[done:]
}

// at tells where the secret ends that begins at i, or -1.
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
	switch c := text[i]; { // most places are none
	case c == p.text[0]:
		if strings.HasPrefix(text[i:], p.text) {
			return i + len(p.text)
		}
	case c != '%' && c != '\\' && lower(c) != p.folded[0]:
		return -1
	}
	for found := 0; i < len(text); {
		c, size := letter(text, i)
		switch {
		case c == 0 && found == 0, c != 0 && c != p.folded[found]:
			return -1
		case c != 0:
			found++
		}
		if i += size; found == len(p.folded) {
			return i
		}
	}
	return -1
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// fold is a text without what a text loses or gains where it is quoted, escaped, or broken into
// lines; read tells how it is read.
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

// letter reads one character: small for large, decoded where it is escaped as in URLs, in Go or in JSON, and 0 for what
// does not count, which are blanks, line ends, backslashes, and the plus sign, which is a blank in the query of a URL.
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
	if i+1 < len(text) && text[i] == '\\' && strings.IndexByte("nrt", text[i+1]) >= 0 {
		return 0, 2
	}
	return plain(text[i]), 1
}

// character reads one character as letter does, but takes nothing for an escape.
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
