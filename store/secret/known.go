package secret

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Known holds the secrets of one process. The zero value is ready. Several goroutines may use it. A
// nil Known holds none.
type Known struct {
	mu       sync.Mutex
	fixed    []pattern         // of URLs, and from Add
	places   map[string]int    // of the first pattern of each text in fixed; its others follow
	added    map[string]bool   // by value; whether it is hidden as a whole
	index    *index            // of fixed; nil: it has changed
	issued   []pattern         // the newest ones from Issue
	separate bool              // see Separate
	login    string            // who is not separate
	of       map[string]*Known // by owner
	whole    *Known            // of one that For returns for such an owner: it learns the same; nil: this is the whole
	shared   *Known            // see Share
}

// issuedMost is a token for each of the connections of some passes. No server is known to quote an older one.
const issuedMost = 64

// AddURL adds the secrets in a URL, which may be malformed. The owner of a job can use them, but not read them.
func (k *Known) AddURL(raw string) {
	if k == nil {
		return
	}
	k.whole.AddURL(raw)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range ofURL(raw) {
		k.put(s, k.whole != nil)
	}
}

// Issue adds a password that was given out, such as a token. Only the newest ones are kept. The owner of a job can use it,
// but not read it.
func (k *Known) Issue(password string) {
	if k == nil {
		return
	}
	k.whole.Issue(password)
	k.mu.Lock()
	defer k.mu.Unlock()
	entire := k.whole != nil
	k.issued = slices.DeleteFunc(k.issued, func(p pattern) bool { // one that is issued again is a newest one
		entire = entire && (p.text != password || p.entire)
		return p.text == password
	})
	k.issued = append(k.issued, patterns(password, entire)...)
	texts := 0 // each with one or several patterns
	for i := len(k.issued) - 1; i >= 0; i-- {
		if i == len(k.issued)-1 || k.issued[i].text != k.issued[i+1].text {
			texts++
		}
		if texts > issuedMost {
			k.issued = slices.Delete(k.issued, 0, i+1)
			break
		}
	}
}

// Add adds a secret that is given out. It also adds its forms in base64, such as in a header, in
// hexadecimal digits, and in a literal of SQL or of a shell. It also adds the parts that a server or a program may quote alone: those of a
// URL, each of several lines, and the values of members. The secret is kept as long as the process lives.
func (k *Known) Add(value string) {
	if k == nil {
		return
	}
	k.whole.Add(value)
	k.add(value, false)
}

// Use is Add for a secret that the owner of a job can use, but not read.
func (k *Known) Use(value string) {
	if k == nil {
		return
	}
	k.whole.Use(value)
	k.add(value, k.whole != nil)
}

func (k *Known) add(value string, entire bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shared != nil {
		k.shared.add(value, true)
	}
	if before, known := k.added[value]; known && (!before || entire) { // each attempt that names the secret adds it
		return
	}
	if k.added == nil {
		k.added = map[string]bool{}
	}
	k.added[value] = entire
	for _, part := range append(parts(value), value) {
		writings := []string{part, strings.Trim(strconv.Quote(part), `"`), url.QueryEscape(part)}
		for _, quote := range []string{"''", `'\''`, `'"'"'`} { // as in SQL, and as shells and programs write a command
			writings = append(writings, strings.ReplaceAll(part, "'", quote))
		}
		slices.Sort(writings)
		for _, written := range slices.Compact(writings) { // forms encodes each of them
			for _, form := range forms(written) {
				k.put(form, entire)
			}
		}
	}
}

// put adds the patterns of a text. One that its owner can read, too, is not only hidden as a whole. The caller holds k.mu.
func (k *Known) put(text string, entire bool) {
	at, known := k.places[text]
	if !known {
		if at = len(k.fixed); k.places == nil {
			k.places = map[string]int{}
		}
		k.places[text] = at
		k.fixed = append(k.fixed, patterns(text, entire)...)
	}
	for ; at < len(k.fixed) && k.fixed[at].text == text; at++ {
		k.fixed[at].entire = k.fixed[at].entire && entire
	}
	k.index = nil
}

// indexed returns the index of the fixed patterns.
func (k *Known) indexed() *index {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.index == nil {
		k.index = newIndex(k.fixed)
	}
	return k.index
}

// forms returns a value, its hexadecimal digits, and the parts of its base64 that do not depend on the
// text before and after the value. Three bytes make four letters, so there are three such parts.
func forms(value string) []string {
	all := []string{value, hex.EncodeToString([]byte(value))}
	if ascii := strings.Trim(strconv.QuoteToASCII(value), `"`); strings.Contains(ascii, `\u`) { // some programs write JSON so
		all = append(all, ascii)
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := enc.EncodeToString([]byte(strings.Repeat("x", before) + value))
			from := (8*before + 5) / 6 // skips the letters that hold bits of the text before
			to := (before + len(value)) * 8 / 6
			if to-from >= leastWithin {
				all = append(all, text[from:to])
			}
		}
	}
	return all
}

// Hide hides the known secrets, and all that looks like a credential. Our own texts stay as they are, see Ours.
func (k *Known) Hide(text string) string {
	if text == "" {
		return ""
	}
	if k != nil {
		k.mu.Lock()
		issued, shared := slices.Clone(k.issued), k.shared
		k.mu.Unlock()
		indexes := []*index{k.indexed()}
		if shared != nil {
			indexes = append(indexes, shared.indexed())
		}
		text = besideOurs(text, func(part string) string {
			list := issued[:len(issued):len(issued)]
			for _, x := range indexes {
				list = append(list, x.in(part)...)
			}
			// The longest secret comes first: another one may be a part of it.
			slices.SortStableFunc(list, func(a, b pattern) int { return len(b.text) - len(a.text) })
			for _, p := range list {
				part = p.hide(part)
			}
			return part
		})
	}
	return Hide(text)
}
