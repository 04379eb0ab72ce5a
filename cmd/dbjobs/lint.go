package main

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/lint"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// warnings returns the warnings about the definitions that a manifest creates or changes.
func (c *cli) warnings(m *manifest.Manifest, changes []store.Change, w world) []report.DefinitionWarning {
	return report.List(lint.Of(lint.Options{
		Manifest: m, Changes: changes, New: w.missing, Calendars: w.calendars, Starved: w.starved, Env: c.env, Host: c.knownLeaves(), Now: cmp.Or(w.now, time.Now()),
	}))
}

// knownLeaves returns what this host allows to steps, or nil if its owner has set nothing.
func (c *cli) knownLeaves() *executor.Host {
	set, err := c.host()
	if err != nil || set.From == "" {
		return nil
	}
	h := set.Leaves(c.db.Secrets())
	if e, err := engine.Of(c.db.URL); err == nil {
		h.Own = own(e.Where(c.db.URL))
	}
	return h
}

// strict adds --strict to a command.
func strict(cmd *cobra.Command, into *bool, what string) {
	cmd.Flags().BoolVar(into, "strict", false, what)
}

// strictly refuses a manifest that has warnings, before anything of it is written. If somebody else changes the
// database between this check and the write, a new warning is only printed.
func (c *cli) strictly(cmd *cobra.Command, m *manifest.Manifest, o store.ApplyOptions) error {
	if err := c.find(cmd.Context()); err != nil {
		return err
	}
	if c.db.Embedded && !c.db.Exists() {
		return refused(c.warnings(m, nil, world{missing: true}))
	}
	o.DryRun = true
	changes, w, err := c.change(cmd, m, o)
	if err != nil {
		return err
	}
	return refused(c.warnings(m, changes, w))
}

// refused returns the error that refuses definitions with warnings, and names all warnings; nil: there are none.
func refused(list []report.DefinitionWarning) error {
	var all []error
	for _, w := range list {
		all = append(all, badInput("refused by --strict: %s", w))
	}
	return errors.Join(all...)
}

// warn prints warnings. If there are many with the same code, it prints only the first ones: 200 jobs at night
// have 200 warnings about the next clock change.
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
