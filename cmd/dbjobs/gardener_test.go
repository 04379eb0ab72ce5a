package main

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// gardener looks for parts of secrets, in each form that a text can have.
type gardener struct {
	*testing.T
	parts   map[string]string // the parts of secrets, each with its name
	lengths []int             // of parts
}

func newGardener(t *testing.T) *gardener {
	g := &gardener{T: t, parts: map[string]string{}}
	for name, value := range grown {
		if name == "HOOK" {
			value = hookPart
		}
		for line := range strings.SplitSeq(strings.TrimPrefix(value, "whsec_"), "\n") {
			if strings.HasPrefix(line, "-----") {
				continue
			}
			for i := 0; i+7 <= len(line); i++ {
				g.parts[strings.ToLower(line[i:i+7])] = name
				g.parts[hex.EncodeToString([]byte(line[i:i+7]))] = name + " in hexadecimal digits"
			}
			for before := range 3 {
				whole := base64.StdEncoding.EncodeToString([]byte("xyz"[:before] + line))
				for i := 4; i+10 <= len(whole)-4; i++ {
					g.parts[strings.ToLower(whole[i:i+10])] = name + " in base64"
				}
			}
		}
	}
	for part := range g.parts {
		if !slices.Contains(g.lengths, len(part)) {
			g.lengths = append(g.lengths, len(part))
		}
	}
	return g
}

var percent = regexp.MustCompile(`%[0-9A-Fa-f]{2}|\\u00[0-9A-Fa-f]{2}|\\x[0-9A-Fa-f]{2}`)

// free fails for each part of a secret that is in a text. It shows no part, because its own output is searched, too.
func (g *gardener) free(what, text string) {
	g.Helper()
	plain := percent.ReplaceAllStringFunc(text, func(s string) string {
		v, _ := strconv.ParseUint(s[len(s)-2:], 16, 8) // the pattern has digits
		return string(rune(v))
	})
	found := map[string]bool{}
	for _, form := range []string{text, plain, strings.ReplaceAll(plain, `\`, "")} {
		form = strings.ToLower(form)
		for i := range form { // there are a thousand parts, of a few lengths
			for _, n := range g.lengths {
				if i+n > len(form) {
					continue
				}
				if name, has := g.parts[form[i:i+n]]; has && !found[name] {
					found[name] = true
					g.Errorf("%s: has a part of %s after %q", what, name, hideParts(g.parts, form[max(0, i-60):i]))
				}
			}
		}
	}
}

func hideParts(parts map[string]string, text string) string {
	for part := range parts {
		text = strings.ReplaceAll(text, part, "#")
	}
	return text
}
