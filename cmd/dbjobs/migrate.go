package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) migrate() *cobra.Command {
	var status, printText, noInstance, owners bool
	var instance, grants, login string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create the tables of dbjobs, or bring them up to date",
		Long: `Creates the tables of dbjobs, or brings them up to date; it also creates a missing SQLite file. You can run it any
number of times, and several at the same time. If only somebody else may create tables, give them the statements that
--print prints.

With --owners, each job belongs to the login that made it, and an ordinary login reaches its own jobs only;
--owners=false ends that. If the installation has owners, --print needs --owners, too: without it, the printed views
let a login find out about rows that they leave out.

--print-grants prints the rights that a kind of login needs: admin migrates, ticker does everything else, reader only
reads, user has its own jobs if owners are on.`,
		Example: `  dbjobs migrate
  dbjobs migrate --database postgres://owner@db.example.org/app --print
  dbjobs migrate --instance production
  dbjobs migrate --database postgres://db.example.org/app --print-grants ticker --login nightly`,
		Args: positional(),
	}
	cmd.Flags().BoolVar(&status, "status", false, "only print the version of the schema")
	cmd.Flags().BoolVar(&printText, "print", false, "only print the SQL statements, without connecting")
	cmd.Flags().StringVar(&instance, "instance", "", "give this database a name: a tick with another DBJOBS_INSTANCE does nothing")
	cmd.Flags().BoolVar(&noInstance, "no-instance", false, "remove the name")
	cmd.Flags().BoolVar(&owners, "owners", false, "let each job belong to the login that made it, or with =false, end that")
	cmd.Flags().StringVar(&grants, "print-grants", "", "only print the rights that a `KIND` of login needs: admin, ticker, reader or user")
	cmd.Flags().StringVar(&login, "login", "", "name of that login")
	cmd.MarkFlagsMutuallyExclusive("status", "print", "instance", "no-instance", "print-grants")
	cmd.MarkFlagsMutuallyExclusive("status", "owners")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		switch {
		case grants != "":
			return c.printGrants(cmd, grants, login, owners)
		case login != "":
			return badInput("--login is for --print-grants")
		case printText:
			return c.printMigrations(cmd, owners)
		}
		if owners {
			if err := c.needsLogins(cmd); err != nil {
				return err
			}
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
		if cmd.Flags().Changed("owners") {
			if err := s.SetOwners(cmd.Context(), owners); err != nil {
				return noRoles(err)
			}
			c.sayOwners(owners)
		}
		if instance != "" || noInstance {
			if err := s.SetInstance(cmd.Context(), instance); err != nil {
				return err
			}
			c.sayInstance(instance)
		}
		if !status {
			c.ring(cmd.Context(), s) // passes may have refused the database as it was
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

// needsLogins refuses owners where the database knows no logins.
func (c *cli) needsLogins(cmd *cobra.Command) error {
	if err := c.find(cmd.Context()); err != nil {
		return err
	}
	if err := store.HasLogins(c.db.URL); err != nil {
		return noLogins(err)
	}
	return nil
}

func (c *cli) sayInstance(name string) {
	if name == "" {
		c.say("this database has no instance name any more; a tick with " + instanceVariable + " set does nothing here")
		return
	}
	c.say("this database is now the instance %q; a tick does nothing here unless DBJOBS_INSTANCE has this name", name)
}

func (c *cli) sayOwners(on bool) {
	if !on {
		c.say("jobs do not belong to logins any more: every login that may write the tables may change all of them")
		return
	}
	c.say("jobs belong to the logins that made them; dbjobs migrate --print-grants prints what rights logins need")
}

// noLogins turns an error that says that the engine has no logins into a usage error.
func noLogins(err error) error {
	if errors.Is(err, store.ErrNoLogins) {
		return badInput("%v", err)
	}
	return err
}

// noRoles says who makes the roles of --owners, if that is what an error misses. The server says it in a hint, which is
// no part of the error.
func noRoles(err error) error {
	if errors.Is(err, store.ErrDenied) && strings.Contains(err.Error(), makesNoRole) {
		return fmt.Errorf("%w; a login that may make roles has to run, once a server: CREATE ROLE dbjobs_admin; CREATE ROLE dbjobs_ticker; CREATE ROLE dbjobs_reader", err)
	}
	return err
}

// makesNoRole is a part of the error that the statements of --owners raise.
const makesNoRole = "this login may make no role"

func (c *cli) printMigrations(cmd *cobra.Command, owners bool) error {
	if err := c.find(cmd.Context()); err != nil {
		return err
	}
	text, err := store.MigrationText(c.db.URL, owners)
	if err != nil {
		return noLogins(err)
	}
	_, err = fmt.Fprint(c.stdout, text)
	return err
}

func (c *cli) printGrants(cmd *cobra.Command, kind, login string, owners bool) error {
	if !slices.Contains(store.LoginKinds, kind) {
		return badInput("--print-grants: there is no kind of login %s; want one of %s", shown(kind), strings.Join(store.LoginKinds, ", "))
	}
	if err := c.find(cmd.Context()); err != nil {
		return err
	}
	text, err := store.Grants(kind, c.db.URL, login, owners)
	if err != nil {
		return noLogins(err)
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
