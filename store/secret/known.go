package secret

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
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
	leastCut    = 4  // of what is left of one at a cut
	leastBegun  = 24 // of the beginning of one, where a server has cut it and says nothing of that
)

// cut stands where a text was cut. What is left of a secret before it, or after it, is hidden as the whole would be.
const cut = "…"

// Cut is the beginning of a text, with a mark where it ends. So a text that is too long to be searched is cut first, and what is
// left of a secret is still hidden.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + cut
}

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

// Add adds a secret that is given out, also as it reads in base64, such as in a header, and in hexadecimal digits. Of a URL,
// its parts are added too, of a text of several lines, each of them: a server or a program may quote those alone. It is kept
// as long as the process lives.
func (k *Known) Add(value string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, part := range append(parts(value), value) {
		for _, written := range []string{part, strings.Trim(strconv.Quote(part), `"`), url.QueryEscape(part)} { // and then encoded
			for _, form := range forms(written) {
				k.fixed = added(k.fixed, form)
			}
		}
	}
}

// leastPart is the least length of a part of a secret that is taken for one: a shorter one is a word.
const leastPart = 12

// parts are what of a secret may be quoted alone: the path, the password, and what is long in the path and the query of a
// URL, such as the address of a webhook; the lines of a key.
func parts(value string) (all []string) {
	add := func(part string) {
		if len(part) >= leastPart && !strings.HasPrefix(part, "-----") {
			all = append(all, part)
		}
	}
	if lines := strings.Split(value, "\n"); len(lines) > 1 {
		for _, line := range lines {
			add(strings.TrimSpace(line))
		}
	}
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		add(u.RequestURI())
		add(u.EscapedPath())
		for _, part := range strings.Split(u.EscapedPath(), "/") {
			add(part)
		}
		for _, list := range u.Query() {
			for _, v := range list {
				add(v)
			}
		}
		all = append(all, ofURL(value)...)
	}
	return all
}

// forms are a value, and what of its base64 does not depend on what stands before and after it there: three bytes make
// four letters, so there are three.
func forms(value string) []string {
	all := []string{value, hex.EncodeToString([]byte(value))}
	if ascii := strings.Trim(strconv.QuoteToASCII(value), `"`); strings.Contains(ascii, `\u`) { // as some write JSON
		all = append(all, ascii)
	}
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
	done, marked := 0, strings.Contains(text, cut)
	for i := 0; i < len(text); {
		end := p.at(text, i)
		if end < 0 && marked && strings.HasSuffix(strings.TrimRight(text[done:i], " \t\r\n"), cut) {
			end = p.rest(text, i)
		}
		if end < 0 {
			i++
			continue
		}
		b.WriteString(text[done:i] + Hidden)
		i, done = end, end
	}
	return b.String() + text[done:]
}

// rest tells where what a cut has left of the secret ends, which begins at i, or -1. The cut may have gone through an escape.
func (p pattern) rest(text string, i int) int {
	if len(p.folded) < leastWithin {
		return -1
	}
	for broken := 0; broken < longestEscape && i+broken < len(text); broken++ {
		for from := 1; from <= len(p.folded)-leastCut; from++ {
			if end := (pattern{folded: p.folded[from:]}).begins(text, i+broken); end >= 0 {
				return end
			}
		}
		if strings.IndexByte("0123456789abcdefABCDEFux", text[i+broken]) < 0 {
			break
		}
	}
	return -1
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
	return p.begins(text, i)
}

// begins tells where the secret ends that begins at i in any form, or -1.
func (p pattern) begins(text string, i int) int {
	for found := 0; i < len(text); {
		if found >= leastCut {
			if left := strings.Index(text[i:min(len(text), i+longestEscape+len(cut))], cut); left == 0 || left > 0 && strings.IndexByte(`%\`, text[i]) >= 0 {
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

// public reports whether a secret begins with what others begin with, too, such as a URL with the name of a server.
func (p pattern) public() bool {
	return strings.Contains(p.folded, "://") || strings.HasPrefix(p.folded, "-----")
}

// longestEscape is the length of an escape, such as \u00e4.
const longestEscape = 6

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
