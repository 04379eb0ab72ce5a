package rules

import "strings"

// words reads a form that is written in words, one word after the other.
type words struct {
	form string
	text string
	base int // the offset of text in the text that was given
	at   int // the beginning of the last word that was returned
	end  int // its end
}

// next returns the next word, or "" at the end.
func (w *words) next() string {
	w.at = w.end
	for w.at < len(w.text) && isBlank(w.text[w.at]) {
		w.at++
	}
	w.end = w.at
	for w.end < len(w.text) && !isBlank(w.text[w.end]) {
		w.end++
	}
	return w.text[w.at:w.end]
}

// peek returns the next word in lower case without moving on.
func (w *words) peek() string {
	ahead := *w
	return strings.ToLower(ahead.next())
}

// take moves past the next word if it is word, and reports whether it did.
func (w *words) take(word string) bool {
	if w.peek() != word {
		return false
	}
	w.next()
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// refuse makes an error about the end of the last word that was returned.
func (w *words) refuse(found, format string, args ...any) error {
	return refuse(w.form, w.base+w.end-len(found), found, format, args...)
}

// starting reads the rest of the text: nothing, or `starting` and a wall time.
func (w *words) starting() (start int64, given bool, err error) {
	word := w.next()
	if word == "" {
		return 0, false, nil
	}
	if !strings.EqualFold(word, "starting") {
		return 0, false, w.refuse(word, "only `starting YYYY-MM-DD[THH:MM[:SS]]` may follow here")
	}
	word = w.next()
	c, rest, ok := readWall(word)
	if !ok || rest != "" {
		return 0, false, w.refuse(word, "a start is YYYY-MM-DD or YYYY-MM-DDTHH:MM[:SS], on the wall clock of the rule's zone")
	}
	if word = w.next(); word != "" {
		return 0, false, w.refuse(word, "nothing may follow the start")
	}
	return c, true, nil
}

// readWall reads YYYY-MM-DD[THH:MM[:SS]] and returns what follows it.
func readWall(text string) (c int64, rest string, ok bool) {
	if len(text) < 10 || text[4] != '-' || text[7] != '-' {
		return 0, text, false
	}
	year, ok1 := digitsOf(text[:4])
	month, ok2 := digitsOf(text[5:7])
	day, ok3 := digitsOf(text[8:10])
	if !ok1 || !ok2 || !ok3 || !validDate(year, month, day) {
		return 0, text, false
	}
	c, rest = joinCivil(dayOf(year, month, day), 0), text[10:]
	if rest == "" || rest[0] != 'T' && rest[0] != 't' {
		return c, rest, true
	}
	sec, rest, ok := readTime(rest[1:], true)
	return c + int64(sec), rest, ok
}

// readTime reads H:MM[:SS], or only HH:MM[:SS] if twoDigits is set, and returns
// the text after it.
func readTime(text string, twoDigits bool) (sec int, rest string, ok bool) {
	hour, rest, found := strings.Cut(text, ":")
	h, ok := digitsOf(hour)
	if !found || !ok || len(hour) > 2 || twoDigits && len(hour) < 2 || h > 23 || len(rest) < 2 {
		return 0, text, false
	}
	m, ok := digitsOf(rest[:2])
	if rest = rest[2:]; !ok || m > 59 {
		return 0, text, false
	}
	sec = h*3600 + m*60
	if len(rest) >= 3 && rest[0] == ':' {
		s, ok := digitsOf(rest[1:3])
		if !ok || s > 59 {
			return 0, text, false
		}
		sec, rest = sec+s, rest[3:]
	}
	return sec, rest, true
}
