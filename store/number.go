package store

import (
	"encoding/json"
	"strconv"
	"strings"
)

// writtenOut writes the numbers of a JSON value as a jsonb column of PostgreSQL gives them back: 1e3 is 1000, and 0 has
// no sign. So a definition that has been stored is the same as the text that it came from, on each engine.
func writtenOut(v any) any {
	switch v := v.(type) {
	case json.Number:
		return json.Number(digits(v.String()))
	case []any:
		for i := range v {
			v[i] = writtenOut(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = writtenOut(v[key])
		}
	}
	return v
}

// mostZeros limits how much longer a number becomes. A number beyond it keeps its exponent.
const mostZeros = 1000

// digits writes a number of JSON without an exponent.
func digits(number string) string {
	rest, negative := strings.CutPrefix(number, "-")
	mantissa, exponent, scaled := strings.Cut(strings.ToLower(rest), "e")
	whole, part, _ := strings.Cut(mantissa, ".")
	if scaled {
		n, err := strconv.Atoi(exponent)
		if err != nil || n > mostZeros || n < -mostZeros {
			return number
		}
		all := strings.Repeat("0", max(0, -n)) + whole + part + strings.Repeat("0", max(0, n-len(part)))
		point := max(0, -n) + len(whole) + n
		whole, part = strings.TrimLeft(all[:point], "0"), all[point:]
		if whole == "" {
			whole = "0"
		}
	}
	out := whole
	if part != "" {
		out += "." + part
	}
	if negative && strings.Trim(out, "0.") != "" {
		out = "-" + out
	}
	return out
}
