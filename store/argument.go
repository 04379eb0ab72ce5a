package store

import (
	"strings"
	"unicode"
)

// Argument returns a name as one word of a command line, so that a command in a message can be typed as it stands. A name with
// blanks, or with characters that a shell reads, is in quotes.
func Argument(name string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./:@%+=,", r)
	}
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
