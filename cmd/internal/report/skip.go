package report

import "github.com/dbjobs/dbjobs/store"

// Skipped returns, in one line, a time that does not run, who decided that, and why.
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
