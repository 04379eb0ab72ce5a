package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/cmd/internal/intake/mysqlevents"
	"github.com/dbjobs/dbjobs/cmd/internal/intake/pgagent"
	"github.com/dbjobs/dbjobs/cmd/internal/intake/pgcron"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store/engine"
)

// targetsFlag adds --target to a command whose source has SQL.
func targetsFlag(cmd *cobra.Command) {
	cmd.Flags().StringArray("target", nil, "`DATABASE=NAME`: statements of that database (on another server: DATABASE@SERVER) run in the target NAME of the host settings; NAME alone: all do")
}

func targetsOf(list []string) (intake.Targets, error) {
	t := intake.Targets{}
	for _, text := range list {
		database, name, both := strings.Cut(text, "=")
		if !both {
			database, name = "", text
		}
		if _, given := t[database]; given {
			return nil, badInput("--target: %q is the second one for its statements; give one", text)
		}
		if name == "" {
			return nil, badInput("--target: %q names no target; want DATABASE=NAME, or NAME for all statements", text)
		}
		t[database] = name
	}
	return t, nil
}

// unusedTarget refuses a --target of a database in which no statement of the source runs: where its name is mistyped, the
// statements would run in dbjobs' own. A source without statements may have any.
func unusedTarget(t intake.Targets, databases []string) error {
	unused := t.Unused(databases)
	if unused == "" || len(databases) == 0 {
		return nil
	}
	names := slices.Compact(slices.Sorted(slices.Values(databases)))
	if names[0] == "" { // the file has no such column, or some of its rows have no value there
		if names = names[1:]; len(names) == 0 {
			return badInput("--target: the source does not say in which database its statements run, and so none is known to run in %s; "+
				"give NAME alone for all of them", shown(unused))
		}
	}
	return badInput("--target: no statement of the source runs in the database %s; they run in %s", shown(unused), strings.Join(names, ", "))
}

// zoned checks --zone.
func zoned(zone string) error {
	if zone == "" {
		return nil
	}
	if _, err := rules.Parse("every 1h", rules.Defaults{Zone: zone}); err != nil {
		return badInput("--zone: %v", err)
	}
	return nil
}

// readDatabase reads what a scheduler has in the database that --database or the variables name. It writes
// nothing.
func (c *cli) readDatabase(cmd *cobra.Command, wanted, what string, read func(ctx context.Context, db *sql.DB) error) (where string, err error) {
	if err := c.find(cmd.Context()); err != nil {
		return "", err
	}
	if c.db.Embedded {
		return "", badInput("%s needs a file, or the URL of the database with --database or DBJOBS_DATABASE_URL", cmd.CommandPath())
	}
	e, err := engine.Of(c.db.URL)
	if err != nil {
		return "", err
	}
	if e.Name != wanted {
		return "", badInput("%s is a database of %s; want one of %s", e.Where(c.db.URL), e.Name, wanted)
	}
	db, err := engine.New(c.db.URL, engine.Options{Login: c.db.Login, Secrets: c.db.Secrets()})
	if err != nil {
		return "", err
	}
	defer db.Close()
	pool, err := db.JobPool(engine.Options{})
	if err != nil {
		return "", err
	}
	defer pool.Close()
	return db.Where(), db.WrapForeign("reading "+what, read(cmd.Context(), pool))
}

func (c *cli) importPgCron() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pg_cron [FILE]", Short: "Write a manifest of the jobs of pg_cron", Args: positional("FILE?"),
		Long: `Writes a manifest of the jobs of pg_cron: those in the database that --database names, which is the one where the
extension was created, or those in a file that psql --csv -c 'SELECT * FROM cron.job' or pg_dump wrote (- is standard
input). A login that is no superuser sees its own jobs only, and not always the zone: --zone.`,
		Example: `  dbjobs import pg_cron --database postgres://admin@db.example.org/postgres -o jobs.yaml
  dbjobs import pg_cron jobs.csv --target shop=shop_db`,
	}
	targetsFlag(cmd)
	return c.importing(cmd, "time zone of the schedules (cron.timezone, or GMT)", func(cmd *cobra.Command, args []string, f *imports, from time.Time) (*intake.Result, error) {
		o := pgcron.Options{Zone: f.zone, Targets: f.targets, From: from}
		if len(args) > 0 {
			text, name, err := c.readSource(cmd, args[0])
			if err != nil {
				return nil, err
			}
			rows, err := pgcron.File(text)
			if err != nil {
				return nil, badInput("%s: %v", name, err)
			}
			o.Source = "pg_cron, " + name
			return pgcron.Convert(rows, o), nil
		}
		var seen *pgcron.Seen
		where, err := c.readDatabase(cmd, "postgres", "cron.job", func(ctx context.Context, db *sql.DB) (err error) {
			seen, err = pgcron.Query(ctx, db)
			return err
		})
		if errors.Is(err, pgcron.ErrAbsent) {
			return nil, badInput("%s: %v", where, pgcron.ErrAbsent)
		}
		if err != nil {
			return nil, err
		}
		if seen.Alone {
			c.say("this login is no superuser, so pg_cron shows it no jobs but its own")
		}
		if o.Zone == "" && seen.NoZone {
			c.say("this login is shown no cron.timezone, so the times are taken as GMT; if the server has another zone, give it with --zone")
		}
		o.Zone, o.Source = cmp.Or(o.Zone, seen.Zone), fmt.Sprintf("pg_cron in %s", where)
		return pgcron.Convert(seen.Rows, o), nil
	})
}

func (c *cli) importEvents() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mysql-events", Short: "Write a manifest of the events of MySQL or MariaDB", Args: positional(),
		Long: `Writes a manifest of the events of the database that --database names. The login needs the privilege EVENT there. An event
whose zone is SYSTEM has the zone of the server, which has no name that can be asked for unless it is UTC:
then --zone is needed.`,
		Example: `  dbjobs import mysql-events --database mysql://admin@db.example.org/shop -o jobs.yaml
  dbjobs import mysql-events --database mysql://admin@db.example.org/shop --zone Europe/Berlin --target shop_db`,
	}
	targetsFlag(cmd)
	return c.importing(cmd, "time zone of the server, for events whose zone is SYSTEM (UTC, if it says so)", func(cmd *cobra.Command, _ []string, f *imports, from time.Time) (*intake.Result, error) {
		var events []mysqlevents.Event
		var server mysqlevents.Server
		where, err := c.readDatabase(cmd, "mysql", "the events", func(ctx context.Context, db *sql.DB) (err error) {
			events, server, err = mysqlevents.Query(ctx, db)
			return err
		})
		if err != nil {
			return nil, err
		}
		o := mysqlevents.Options{Source: "the events of " + where, Zone: f.zone, Targets: f.targets, Now: from}
		if o.Zone == "" && !server.UTC() && mysqlevents.System(events) {
			return nil, badInput("events use the zone of the server, which calls itself %s; name it with --zone, such as --zone Europe/Berlin", server.Zone)
		}
		if o.Zone == "" {
			o.Zone = "UTC"
		}
		return mysqlevents.Convert(events, server, o), nil
	})
}

func (c *cli) importPgAgent() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pgagent", Short: "Write a manifest of the jobs of pgAgent", Args: positional(),
		Long: `Writes a manifest of the jobs of pgAgent, with their steps, schedules and exceptions, from the database that --database
names: the one with the schema pgagent. No password of a connection string is written.`,
		Example: `  dbjobs import pgagent --database postgres://admin@db.example.org/postgres -o jobs.yaml
  dbjobs import pgagent --database postgres://admin@db.example.org/postgres --target shop=shop_db`,
	}
	targetsFlag(cmd)
	return c.importing(cmd, "time zone of the schedules (TimeZone of the server)", func(cmd *cobra.Command, _ []string, f *imports, from time.Time) (*intake.Result, error) {
		var jobs []pgagent.Job
		zone := ""
		where, err := c.readDatabase(cmd, "postgres", "the jobs of pgAgent", func(ctx context.Context, db *sql.DB) (err error) {
			jobs, zone, err = pgagent.Query(ctx, db)
			return err
		})
		if errors.Is(err, pgagent.ErrAbsent) {
			return nil, badInput("%s: %v", where, pgagent.ErrAbsent)
		}
		if err != nil {
			return nil, err
		}
		if f.zone != "" {
			zone = f.zone
		}
		if zone == "Etc/UTC" || zone == "GMT" {
			zone = "UTC"
		}
		if err := zoned(zone); err != nil {
			return nil, badInput("the server's TimeZone is %s, which is no zone here; name it with --zone, such as --zone Europe/Berlin", zone)
		}
		return pgagent.Convert(jobs, pgagent.Options{Source: "pgAgent in " + where, Zone: zone, Targets: f.targets, Now: from}), nil
	})
}
