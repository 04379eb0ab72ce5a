package store

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/store/secret"
)

// An output is kept whole if it is short. Of a longer one, the head and the tail are kept, and how much
// is missing between them is stated.
func TestOutputIsBounded(t *testing.T) {
	var lines strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&lines, "line %d\n", i)
	}
	for name, c := range map[string]struct{ text, head, tail string }{
		"nothing":       {"", "", ""},
		"short":         {"one\ntwo\n", "one\ntwo\n", "one\ntwo\n"},
		"at the bound":  {strings.Repeat("x", MostOutput), "xxx", "xxx"},
		"one more":      {"a" + strings.Repeat("x", MostOutput-1) + "b", "axx", "xxb"},
		"lines":         {lines.String(), "line 0\nline 1\n", "\nline 99998\nline 99999\n"},
		"not UTF-8":     {"a\xff\xfeb\x00c", "a\uFFFDb\uFFFDc", "a\uFFFDb\uFFFDc"},
		"much of it":    {strings.Repeat("\xff", 10*MostOutput), "\uFFFD", "\uFFFD"},
		"grows":         {strings.Repeat("\xffa", MostOutput/2), "\uFFFDa", "\uFFFDa"},
		"many NUL":      {strings.Repeat("\x00", 3*MostOutput), "\uFFFD\uFFFD", "\uFFFD\uFFFD"},
		"long letters":  {strings.Repeat("語", MostOutput), "語語", "語語"},
		"five times it": {strings.Repeat("word ", MostOutput), "word word", "word "},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 7, 4096, len(c.text) + 1} {
				var o Output
				for rest := c.text; rest != ""; rest = rest[min(size, len(rest)):] {
					_, _ = o.Write([]byte(rest[:min(size, len(rest))]))
				}
				got := o.String()
				if len(got) > MostOutput || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
					t.Fatalf("%d bytes, valid %t", len(got), utf8.ValidString(got))
				}
				if !strings.HasPrefix(got, c.head) || !strings.HasSuffix(got, c.tail) {
					t.Errorf("in pieces of %d: %.40q … %.40q", size, got, got[max(0, len(got)-40):])
				}
				if cap(o.head)+cap(o.tail) > 12*MostOutput {
					t.Errorf("%d bytes of memory", cap(o.head)+cap(o.tail))
				}
				if again := (&Output{head: []byte(got), size: int64(len(got))}).String(); again != got {
					t.Error("what is bounded already is cut again")
				}
			}
		})
	}
	var o Output
	_, _ = o.Write([]byte(lines.String()))
	got := o.String()
	var left int
	if _, err := fmt.Sscanf(got[strings.Index(got, "… "):], "… %d bytes left out …", &left); err != nil {
		t.Fatal(err)
	}
	note := fmt.Sprintf("\n… %d bytes left out …\n", left)
	if shown := len(got) - len(note); shown+left != lines.Len() {
		t.Errorf("%d bytes of which %d are shown and %d left out", lines.Len(), shown, left)
	}
}

// A secret is hidden in each value of a result, also where it is a number, and in the names of members. The result stays
// JSON.
func TestResultHidesSecrets(t *testing.T) {
	t.Parallel()
	known := &secret.Known{}
	known.Add("738291645")
	s, err := Open(t.Context(), "sqlite:"+t.TempDir()+"/jobs.db", Options{Create: true, Secrets: known})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := s.result("", `{"row": {"a": 738291645, "b": "it is 738291645", "c": [7.50]}, "rows": 1, "body": {"of 738291645": true}}`)
	if want := `{"body":{"of [hidden]":true},"row":{"a":"[hidden]","b":"it is [hidden]","c":[7.50]},"rows":1}`; got != want {
		t.Errorf("%v, want %s", got, want)
	}
	known.Add("abc") // [hidden] is longer
	if got := s.result("", `{"code": 200, "body": {"id": 1, "wide": "`+strings.Repeat("abc ", 4<<10)+`"}}`); got != `{"code":200}` {
		t.Errorf("of an answer that grows too long, %v is kept", got)
	}
}

// A secret that stands where an output is cut is hidden as a whole, also where no blank is near.
func TestOutputHidesBeforeItCuts(t *testing.T) {
	value := strings.Repeat("geheim", 200)
	for name, text := range map[string]string{
		"all is there":     strings.Repeat("x", MostOutput/2-600) + value + strings.Repeat("x", MostOutput),
		"some is left out": strings.Repeat("x", MostOutput/2-600) + value + strings.Repeat("x", 10*MostOutput) + value + strings.Repeat("x", MostOutput/2-600),
	} {
		o := Output{Hide: func(s string) string { return strings.ReplaceAll(s, value, "[hidden]") }}
		_, _ = o.Write([]byte(text))
		if got := o.String(); strings.Contains(got, "geheim") || len(got) > MostOutput {
			t.Errorf("%s: a part of the secret is kept, in %d bytes", name, len(got))
		}
	}
}
