package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) migrate() *cobra.Command {
	var status, printText, noInstance bool
	var instance string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create the tables of dbjobs, or bring them up to date",
		Long: `Creates the tables of dbjobs, or brings them up to date; it also creates a missing SQLite file. You can run it any
number of times, and several at the same time. If only somebody else may create tables, give them the statements that
--print prints.`,
		Example: `  dbjobs migrate
  dbjobs migrate --database postgres://owner@db.example.org/app --print
  dbjobs migrate --instance production`,
		Args: positional(),
	}
	cmd.Flags().BoolVar(&status, "status", false, "only print the version of the schema")
	cmd.Flags().BoolVar(&printText, "print", false, "only print the SQL statements, without connecting")
	cmd.Flags().StringVar(&instance, "instance", "", "give this database a name: a tick with another DBJOBS_INSTANCE does nothing")
	cmd.Flags().BoolVar(&noInstance, "no-instance", false, "remove the name")
	cmd.MarkFlagsMutuallyExclusive("status", "print", "instance", "no-instance")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("instance") && instance == "" { // an unset shell variable must not let a copy of the database run jobs
			return badInput("--instance is empty; to remove the name, use --no-instance")
		}
		if printText {
			return c.printMigrations(cmd)
		}
		a := alter
		if status {
			a = probe
		}
		s, err := c.open(cmd, a)
		if err != nil {
			return err
		}
		defer s.Close()
		if !status {
			if err := c.runMigrations(cmd.Context(), s); err != nil {
				return err
			}
		}
		if instance != "" || noInstance {
			if err := s.SetInstance(cmd.Context(), instance); err != nil {
				return err
			}
			c.sayInstance(instance)
		}
		if warning, err := s.Warning(cmd.Context()); err != nil {
			return err
		} else if warning != "" {
			c.tell(slog.LevelWarn, "%s", warning)
		}
		return c.printSchema(cmd.Context(), s)
	})
	return c.prints(cmd)
}

func (c *cli) sayInstance(name string) {
	if name == "" {
		c.say("this database has no instance name any more; a tick with " + instanceVariable + " set does nothing here")
		return
	}
	c.say("this database is now the instance %q", name)
}

func (c *cli) printMigrations(cmd *cobra.Command) error {
	if err := c.find(cmd); err != nil {
		return err
	}
	text, err := store.MigrationText(c.db.URL)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.stdout, text)
	return err
}

func (c *cli) runMigrations(ctx context.Context, s *store.Store) error {
	applied, err := s.Migrate(ctx)
	for _, name := range applied {
		c.say("applied %s", name)
	}
	return err
}

func (c *cli) printSchema(ctx context.Context, s *store.Store) error {
	schema, err := s.Schema(ctx)
	if err != nil {
		return err
	}
	engine, err := s.Version(ctx)
	if err != nil {
		return err
	}
	v := report.Schema{Database: c.db.Display(), Engine: engine, Schema: schema, Usable: schema.Check() == nil}
	return c.print(v, func() error { return v.Print(c.stdout) })
}
