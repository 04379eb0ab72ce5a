package manifest

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/store"
)

// Notes are remarks for the readers of a manifest, one on each line, and the zone of its rules.
type Notes struct {
	Zone       string // of the file, which names it once; empty: UTC
	Head, Foot []string
	Jobs       map[string][]string // before the job of that name
}

// EncodeNoted writes definitions as a manifest without a name, with remarks.
func EncodeNoted(w io.Writer, d store.Definitions, n Notes) error {
	root := &object{}
	if n.Zone == "" {
		n.Zone = "UTC"
	}
	root.put("zone", plain(n.Zone))
	if err := remark(w, n.Head); err != nil {
		return err
	}
	if err := encode(w, root, d, "", n); err != nil {
		return err
	}
	return remark(w, n.Foot)
}

// remark writes comments.
func remark(w io.Writer, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := io.WriteString(w, comment(lines)+"\n")
	return err
}

// comment returns the text of a comment of several lines. No content of the lines can end the comment.
func comment(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.TrimRight("# "+printable(line), " "))
	}
	return b.String()
}

// printable replaces characters that YAML forbids in a comment, and those that could control a terminal.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(line, string(utf8.RuneError)))
}
