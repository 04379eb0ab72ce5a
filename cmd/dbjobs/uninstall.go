package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) uninstall() *cobra.Command {
	var confirm string
	var force bool
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Drop the tables of dbjobs, with all jobs and runs", Args: positional(),
		Long: `Drops all tables of dbjobs, with the definitions, the runs and the change log in them. First it asks for the name of
the database, unless --confirm gives it. Nothing else in the database is touched, and no file is deleted. The login must be
the one that made the tables.

Stop the triggers first. While runs are being executed, uninstall refuses without --force, since their ends would not be
recorded. "dbjobs export --all > jobs.yaml" keeps the definitions, and "dbjobs migrate" makes empty tables again.`,
		Example: `  dbjobs uninstall --confirm dbjobs.db
  dbjobs uninstall --confirm app --database postgres://owner@db.example.org/app`,
	}
	cmd.Flags().StringVar(&confirm, "confirm", "", "`NAME` of the database, so that it is not asked for")
	cmd.Flags().BoolVar(&force, "force", false, "drop the tables even while runs are being executed")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		s, err := c.open(cmd, probe)
		if err != nil {
			return err
		}
		defer s.Close()
		schema, err := s.Schema(cmd.Context())
		if err != nil {
			return err
		}
		u := report.Uninstalled{Database: s.Where()}
		if err := schema.CheckKnown("uninstall"); err != nil {
			return err
		}
		if u.Contents, err = s.Contents(cmd.Context()); err != nil {
			return err
		}
		if u.None { // a restore that stopped may have tables and no version
			return &usageError{problem: u.Database + " has no tables of dbjobs"}
		}
		if err := c.agreed(cmd, s, u, confirm); err != nil {
			return err
		}
		u.SchemaStays, err = s.Uninstall(cmd.Context(), force)
		if errors.Is(err, store.ErrBusy) {
			return &usageError{problem: fmt.Sprintf("%v; nothing was dropped", err), hint: "stop the triggers and wait, or cancel the runs; --force drops the tables anyway"}
		}
		if err != nil {
			return err
		}
		return c.print(u, func() error { return u.Print(c.stdout) })
	})
	return c.prints(cmd)
}

// agreed says what will be deleted, and returns nil if the user confirms that with the name of the database.
func (c *cli) agreed(cmd *cobra.Command, s *store.Store, u report.Uninstalled, confirm string) error {
	name := databaseName(s.Where())
	if confirm != "" {
		if confirm != name {
			return badInput("--confirm: found %s, but the database is %s; nothing was dropped", shown(confirm), name)
		}
		return nil
	}
	c.say("this drops the tables of dbjobs in %s, with %s", u.Database, u.Lost())
	if u.Jobs > 0 && len(u.Missing) == 0 {
		c.say("dbjobs export --all > jobs.yaml keeps the definitions")
	}
	c.say("type the name of the database, %s, to go on:", name)
	line, err := bufio.NewReader(interruptible{cmd.Context(), c.stdin}).ReadString('\n')
	if cmd.Context().Err() != nil {
		return cmd.Context().Err()
	}
	if given := strings.TrimSpace(line); given != name || err != nil && given == "" {
		return badInput("found %s, want %s; nothing was dropped", shown(given), name)
	}
	return nil
}

// databaseName returns the name of a database, or of its file, without what stands before it.
func databaseName(where string) string { return where[strings.LastIndexAny(where, "/:")+1:] }
