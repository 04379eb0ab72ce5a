// Package visible keeps characters that could control a terminal out of printed documents: JSON and YAML. There,
// such characters can be written as escapes, which every reader turns back into the characters.
package visible

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Controls reports whether a character could control a terminal, or the text that is shown beside it.
func Controls(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

// JSON returns a text of JSON with escapes. In JSON, such characters stand only within strings.
func JSON(text []byte) []byte {
	return escaped(text, func(r rune) string {
		if r > 0xFFFF {
			high, low := utf16.EncodeRune(r)
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// YAML returns a text of YAML with escapes. Scalars that contain such characters must be in double quotes.
func YAML(text []byte) []byte {
	return escaped(text, func(r rune) string {
		if r > 0xFFFF {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

func escaped(text []byte, escape func(rune) string) []byte {
	if bytes.IndexFunc(text, Controls) < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if Controls(r) {
			out = append(out, escape(r)...)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}
