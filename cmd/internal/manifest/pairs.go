package manifest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Paired writes the characters beyond U+FFFF of a JSON text as themselves. JSON may escape one as a pair, such as
// \ud83d\udcbe, and YAML has no pairs. Any other text stays as it is.
func Paired(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\ud`)) && !bytes.Contains(text, []byte(`\uD`)) || !json.Valid(text) {
		return text
	}
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		if text[0] != '\\' {
			out, text = append(out, text[0]), text[1:]
			continue
		}
		if r := utf16.DecodeRune(escaped(text), escaped(text[min(6, len(text)):])); r != utf8.RuneError {
			out, text = utf8.AppendRune(out, r), text[12:]
			continue
		}
		out, text = append(out, text[:2]...), text[2:] // so the second of two backslashes begins no escape
	}
	return out
}

// escaped returns the code of the escape \uXXXX that a text begins with, or -1.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	code, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(code)
}
