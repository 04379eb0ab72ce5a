package secret

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// quotes are those that are open at a place of a text. Each has the backslashes before it, as in JSON that is in a text of JSON.
type quotes map[string]bool

// pass goes on behind a text.
func (q quotes) pass(text string) {
	for i := range len(text) {
		if strings.IndexByte("\"'`", text[i]) < 0 {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+1:])
		if text[i] == '\'' && unicode.IsLetter(before) && unicode.IsLetter(after) { // an apostrophe
			continue
		}
		kind := text[i-backslashes(text[:i]) : i+1]
		q[kind] = !q[kind]
	}
}

// backslashes returns how many of them a text ends with.
func backslashes(text string) int { return len(text) - len(strings.TrimRight(text, `\`)) }

// valueOf returns the quote around a value, and the length of the value with its quotes. A value without quotes ends at a quote
// only if that was open before its name.
func valueOf(text string, opened quotes) (open string, length int) {
	if open = quote.FindString(text); open != "" {
		if twice := open + open; len(open) == 1 && strings.HasPrefix(text, twice) && len(text) > len(twice) && !strings.ContainsAny(text[2:3], ends+",;)}]&") {
			return twice, lengthInTwo(text, twice)
		}
		return open, lengthIn(text, open)
	}
	if strings.HasPrefix(text, Hidden) {
		return "", len(Hidden)
	}
	for ; length < len(text); length++ {
		next := strings.IndexAny(text[length:], ends+"&")
		if next < 0 {
			break
		}
		length += next
		switch text[length] {
		case '&':
			if follows.MatchString(text[length:]) {
				return "", length
			}
		case '"', '\'', '`':
			if escape := backslashes(text[:length]); opened[text[length-escape:length+1]] {
				return "", length - escape
			}
		default:
			return "", length
		}
	}
	return "", len(text)
}

// lengthIn returns the length of a value in quotes. In the value, the quote has one more level of backslashes before it, or there
// are two of it.
func lengthIn(text, open string) int {
	mark, level := open[len(open)-1], len(open)-1
	for i := len(open); ; i++ {
		next := strings.IndexByte(text[i:], mark)
		if next < 0 {
			return len(text)
		}
		i += next
		before := backslashes(text[len(open):i])
		switch {
		case before < level || (before-level)/(level+1)%2 == 1:
		case level == 0 && strings.IndexByte(text[i+1:min(len(text), i+2)], mark) == 0 && !strings.HasPrefix(text[i+2:], " at line "): // as MySQL ends what it quotes
			i++
		default:
			return i + 1
		}
	}
}

// lengthInTwo is lengthIn for a literal of SQL in another one, such as ”it””s a value”.
func lengthInTwo(text, twice string) int {
	for i := len(twice); ; i += 2 * len(twice) {
		next := strings.Index(text[min(i, len(text)):], twice)
		if next < 0 {
			return len(text)
		}
		if i += next; !strings.HasPrefix(text[i+len(twice):], twice) {
			return i + len(twice)
		}
	}
}
