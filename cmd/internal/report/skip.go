package report

import "github.com/dbjobs/dbjobs/store"

// Skipped is a time that is not to run, in a line: with who decided that, and why.
func Skipped(k store.Skip) string {
	text := Instant(k.At)
	if k.Schedule != "" {
		text += " of " + k.Schedule
	}
	if text += ", by " + k.By; k.Reason != "" {
		text += ": " + k.Reason
	}
	return text
}
