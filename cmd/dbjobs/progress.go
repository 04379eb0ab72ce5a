package main

import (
	"fmt"

	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
)

// progress shows on a terminal, in one line that is written again and again, how many of the jobs are done. end removes the
// line. In a file, a pipe or a log there is nothing of it, nor beside JSON.
func (c *cli) progress(command string) (show func(done, of int), end func()) {
	f := c.stderr
	if c.asJSON || c.logFormat != logs.Text || !report.IsTerminal(f) {
		return nil, func() {}
	}
	const clear = "\r\x1b[K"
	shown := false
	show = func(done, of int) {
		if done == of {
			return
		}
		shown = true
		fmt.Fprintf(f, clear+"%s: %s of %s jobs", command, thousands(done), thousands(of))
	}
	return show, func() {
		if shown {
			fmt.Fprint(f, clear)
		}
	}
}

// thousands writes a number such as 12,000.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
