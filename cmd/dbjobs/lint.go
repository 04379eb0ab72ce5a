package main

import (
	"log/slog"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/lint"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

// warnings are those of what a manifest creates or changes.
func (c *cli) warnings(m *manifest.Manifest, changes []store.Change) []report.DefinitionWarning {
	return report.List(lint.Of(lint.Options{
		Manifest: m, Changes: changes, Shared: c.shared, Calendars: c.calendars, Env: c.env, Now: time.Now(),
	}))
}

// warn prints warnings. Of many by one code, only the first are there: 200 jobs at night make 200 of the next clock
// change.
func (c *cli) warn(list []report.DefinitionWarning) {
	const most = 3
	var codes []string
	count := map[string]int{}
	for _, w := range list {
		if count[w.Code]++; count[w.Code] == 1 {
			codes = append(codes, w.Code)
		}
		if count[w.Code] <= most {
			c.tell(slog.LevelWarn, "warning: %s", w)
		}
	}
	for _, code := range codes {
		if more := count[code] - most; more > 0 {
			c.tell(slog.LevelWarn, "warning: and %d more of %s; --json has all, dbjobs rule lint RULE those of one rule", more, code)
		}
	}
}
