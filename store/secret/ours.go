package secret

import "strings"

// begin is how each of our texts begins. So few places of a text are compared with them.
const begin = "; "

var ours []string

// Ours returns texts of dbjobs that stand in messages as they are, such as an advice, each after a semicolon, and remembers
// them: Hide changes nothing about them. A password may be a usual word, such as wrong. If that word were hidden in a text that
// everybody knows, the advice would be lost, and the password told. Packages call it while the program starts.
func Ours[K comparable](texts map[K]string) map[K]string {
	for _, text := range texts {
		if strings.HasPrefix(text, begin) {
			ours = append(ours, text)
		}
	}
	return texts
}

// besideOurs hides secrets in what stands before, between and after our texts.
func besideOurs(text string, hide func(string) string) string {
	var b strings.Builder
	done := 0
	for at := 0; ; {
		next := strings.Index(text[at:], begin)
		if next < 0 {
			return b.String() + hide(text[done:])
		}
		at += next
		if n := oursAt(text[at:]); n > 0 {
			b.WriteString(hide(text[done:at]) + text[at:at+n])
			at += n
			done = at
		} else {
			at += len(begin)
		}
	}
}

// oursAt returns the length of the longest of our texts with which a text begins.
func oursAt(text string) (length int) {
	for _, own := range ours {
		if len(own) > length && strings.HasPrefix(text, own) {
			length = len(own)
		}
	}
	return length
}
