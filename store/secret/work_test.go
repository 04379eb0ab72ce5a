package secret

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Hiding takes a time that grows with the length of a text, not with its square, whatever stands in it. With a square,
// the texts would take hours.
func TestHideLongTexts(t *testing.T) {
	k := &Known{}
	k.AddURL("postgres://dbjobs:36INQVIXSSV5ZY5RZSM4C3VJAT@127.0.0.1:41207/db")
	k.Issue(strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 26))
	for name, part := range map[string]string{"blanks": " ", "line ends": "\r\n", "cuts": "…", "cuts and letters": "… MII   ", "URLs": "a://", "URLs with questions": "a://?a"} {
		if got := k.Hide("…" + strings.Repeat(part, (1<<20)/len(part))); !strings.Contains(got, part) {
			t.Errorf("%s: %.100q", name, got)
		}
	}
}

// A secret that repeats itself is searched once for what stands beside each cut, and not for each of its rests. With the
// rests, this would take minutes.
func TestHideASecretThatRepeatsItself(t *testing.T) {
	k := &Known{}
	k.Issue(strings.Repeat("a", 20_000))
	const cuts = 5000
	if got := k.Hide(strings.Repeat("…aaaab", cuts)); strings.Count(got, Hidden+"b") != cuts || strings.Contains(got, "aa") {
		t.Errorf("%.100q", got)
	}
	if got := k.Hide(strings.Repeat("a", 64<<10)); got != strings.Repeat(Hidden, 4) {
		t.Errorf("%.100q", got)
	}
}

// Short ways to the places of secrets lead to the same places as a plain search.
func TestHideLikePlainSearch(t *testing.T) {
	parts := []string{"…", "…", " ", "\t", "\n", "a", "b", "A", "ab", "abab", "aaaa", "abcabcabd", `\u0061`, `\u00`, "%61", "%6", "&#97;", "&#x62;", "&amp;", "&am", "&#43;", ";", "+", `\`, "\xe2\x80", "c", "d", "://", "x://", ":", "@", "?a=", "?a", "&a=", "&", "password=", "password", "[hidden]", "'", `"`, "="}
	secrets := []string{"ababab", "aaaaaaaa", "abcabcabd", "ab&cd;ab", "abcabcabdabcabcabdabcabcabd", "ab%61ab cd", "a…ab", "abc", "ab-----abab", strings.Repeat("a", 60), strings.Repeat("aab", 20), "b://abababab", strings.Repeat("ab", 20) + "c"}
	random := rand.New(rand.NewPCG(1, 2))
	hidden := 0
	for range 20000 {
		var b strings.Builder
		for range 1 + random.IntN(16) {
			if random.IntN(5) == 0 {
				s := secrets[random.IntN(len(secrets))]
				from := random.IntN(len(s))
				b.WriteString(s[from : from+1+random.IntN(len(s)-from)])
			} else {
				b.WriteString(parts[random.IntN(len(parts))])
			}
		}
		text := b.String()
		for _, p := range patterns(secrets[random.IntN(len(secrets))], false) {
			got, want := p.hide(text), plainHide(p, text)
			if got != want {
				t.Fatalf("%q in %q: %q, want %q", p.text, text, got, want)
			}
			if got != text {
				hidden++
			}
		}
		if got, want := hideURLs(text), plainURLs(text); got != want {
			t.Fatalf("%q became %q, want %q", text, got, want)
		}
		all := quotes{"'": true, `"`: true, "`": true}
		if open, n := valueOf(text, all); open == "" && n != plainValue(text) && !strings.Contains(text, `\`) {
			t.Fatalf("the value of %q has length %d, want %d", text, n, plainValue(text))
		}
	}
	if hidden < 1000 {
		t.Errorf("only %d texts had a secret", hidden)
	}
}

func plainHide(p pattern, text string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); {
		end := p.at(text, i)
		if end < 0 && strings.HasSuffix(strings.TrimRight(text[done:i], " \t\r\n"), cut) {
			end = plainRest(p, text, i)
		}
		if i++; end >= 0 {
			b.WriteString(text[done:i-1] + Hidden)
			i, done = end, end
		}
	}
	return b.String() + text[done:]
}

func plainRest(p pattern, text string, i int) int {
	if len(p.folded) < leastWithin {
		return -1
	}
	for broken := 0; broken < longestEscape && i+broken < len(text); broken++ {
		for from := 1; from <= len(p.folded)-leastCut; from++ {
			if end := (pattern{folded: p.folded[from:]}).begins(text, i+broken); end >= 0 {
				return end
			}
		}
		if strings.IndexByte(inEscapes, text[i+broken]) < 0 {
			break
		}
	}
	return -1
}

// extent returns the part of a text that may still belong to a URL.
func extent(text string) string {
	if end := strings.IndexAny(text, ends); end >= 0 {
		return text[:end]
	}
	return text
}

func plainURLs(text string) string {
	before := ""
	for {
		at := scheme.FindStringIndex(text)
		if at == nil {
			return before + text
		}
		before, text = before+text[:at[1]], text[at[1]:]
		if from, to, ok := passwordIn(extent(text)); ok && text[from:to] != "password" {
			before, text = before+text[:from]+Hidden, text[to:]
		}
	}
}

func plainValue(text string) int {
	value := extent(text)
	if strings.HasPrefix(value, Hidden) {
		return len(Hidden)
	}
	if next := another.FindStringIndex(value); next != nil {
		return next[0]
	}
	return len(value)
}

// To learn a secret of many lines again, and to search a text for it, takes about the time of reading both. With a comparison of
// each line with each other one, and a search of the text for each line, this would take minutes.
func TestASecretOfManyLines(t *testing.T) {
	var lines, words strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&lines, "%x of a bundle of keys\n", 7919*i)
		fmt.Fprintf(&words, "word%d ", i)
	}
	k := &Known{}
	for range 20 {
		k.Add(lines.String())
		if got := k.Hide(words.String() + "f18c41 of a bundle of keys"); got != words.String()+Hidden {
			t.Fatalf("%.100q", got[max(0, len(got)-100):])
		}
	}
}

// What an index leaves out is not in a text.
func TestIndexLeavesOutNothing(t *testing.T) {
	parts := []string{"…", " ", "\n", "a", "b", "A", "ab", "abab", `\u0061`, `\u00`, "%61", "%6", "%25", "&#97;", "&am", ";", "+", `\`, "c", "d", "://", "x", "-----"}
	var k Known
	for i, s := range []string{"ababab", "ab&cd;ab", "abcabcabdabcabcabdabcabcabd", "ab%61ab cd", "a…abxx", "abc", "+ab-----abab", strings.Repeat("aab", 20), "b://abababab", `abx\u00`, "%61bxa%6"} {
		if i%3 == 0 {
			k.Issue(s)
		} else {
			k.put(s, i%3 == 1)
		}
	}
	all := slices.Concat(k.fixed, k.issued)
	random := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		var b strings.Builder
		for range 1 + random.IntN(16) {
			if random.IntN(4) == 0 {
				s := all[random.IntN(len(all))].text
				from := random.IntN(len(s))
				b.WriteString(s[from : from+1+random.IntN(len(s)-from)])
			} else {
				b.WriteString(parts[random.IntN(len(parts))])
			}
		}
		some := newIndex(all).in(b.String())
		for _, p := range all {
			if p.hide(b.String()) != b.String() && !slices.Contains(some, p) {
				t.Fatalf("%q in %q", p.text, b.String())
			}
		}
	}
}
