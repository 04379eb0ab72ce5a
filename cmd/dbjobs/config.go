package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store/engine"
)

func (c *cli) config() *cobra.Command {
	config := &cobra.Command{Use: "config", Short: "The settings of this host"}
	config.AddCommand(c.prints(&cobra.Command{
		Use:   "check",
		Short: "Show what is in force on this host, and from where",
		Long: `Show which database is used, what this host allows steps to touch, and where each of it is set: by a flag, a
variable, the file with the settings of the host, or by default. No secret is shown, but each is read, so that a
missing one is found before a job needs it. The database is not opened.

The settings are read from the file or the text in DBJOBS_CONFIG, or else from the first of these files that is there:
$XDG_CONFIG_HOME/dbjobs/config.yaml (or ~/.config/dbjobs/config.yaml), on a Mac then
~/Library/Application Support/dbjobs/config.yaml, /etc/dbjobs/config.yaml; on Windows, it is
%APPDATA%\dbjobs\config.yaml.`,
		Example: `  dbjobs config check
  dbjobs config check --json`,
		Args: positional(),
		RunE: c.do(func(cmd *cobra.Command, _ []string) error { return c.checkConfig(cmd) }),
	}))
	return group(config)
}

func (c *cli) checkConfig(cmd *cobra.Command) error {
	set, err := c.host()
	if err != nil {
		return err
	}
	r := report.Config{Settings: set.From}
	list, wrong := c.several()
	if list == nil && wrong == nil {
		list = []choice{{"", func(ctx context.Context) (settings.Database, error) { err := c.find(ctx); return c.db, err }}}
	}
	for i := range list {
		db, err := list[i].find(cmd.Context())
		if err != nil {
			wrong = errors.Join(wrong, ofDatabase(list[i].name, err))
			continue
		}
		r.Add("database", list[i].name, db.Display(), db.From, nil)
		if d := db.Direct; d != nil {
			r.Add("database", "direct", d.Display(), d.From, nil)
		}
		if e, err := engine.Of(db.URL); err == nil && own(e.Where(db.URL)) {
			r.Add("permission", list[i].name, "all programs and addresses", "nobody else can write the database file", nil)
		}
	}
	for _, name := range c.setVariables() {
		value, _ := c.env(name)
		if value = shown(value); slices.Contains(secretVariables, name) {
			value = "set, not shown"
		}
		r.Add("setting", "", value, name, nil)
	}
	problems := set.Describe(cmd.Context(), &r)
	err = c.print(r, func() error {
		if set.From == "" {
			c.say("this host has no settings; their file would be %s", strings.Join(host.Places(host.Lookup(c.env)), ", or "))
		}
		return r.Print(c.stdout)
	})
	if len(problems) > 0 {
		err = errors.Join(err, &manifest.Error{Problems: problems})
	}
	return errors.Join(err, wrong)
}

// setVariables returns the variables that are set, except those that name the database or the settings.
func (c *cli) setVariables() []string {
	return slices.DeleteFunc(variables(), func(name string) bool {
		value, _ := c.env(name)
		return value == "" || name == host.Variable || slices.Contains(settings.Variables(), name)
	})
}
