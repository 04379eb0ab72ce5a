package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/nearest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
)

// access says what a command expects of the database, and whether it may create a missing one.
type access int

const (
	use   access = iota // the database must exist, with a schema that this program can use
	probe               // it must exist; the command checks the schema itself
	begin               // a missing embedded database is created; the schema must be usable
	alter               // any missing SQLite file is created, and the schema may have any version
)

// find decides which database the command uses.
func (c *cli) find(ctx context.Context) error { return unfound(c.findOne(ctx)) }

// unfound returns the error for a database that cannot be found. It is bad input, unless it passes without help: then a pass is
// tried again, as after a failure of the database itself.
func unfound(err error) error {
	_, placed := errors.AsType[*manifest.Error](err)
	_, misused := errors.AsType[*usageError](err)
	_, passes := errors.AsType[aws.MomentaryError](err)
	_, unread := errors.AsType[*settings.UnreadError](err)
	switch {
	case err == nil, placed, misused:
		return err
	case passes, unread:
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	return &usageError{problem: err.Error()}
}

func (c *cli) findOne(ctx context.Context) (err error) {
	switch {
	case c.chosen != nil:
		c.db, err = c.chosen.find(ctx)
		return err
	case len(c.databases) > 1:
		return badInput("--database was given %d times; only tick, work and serve take several", len(c.databases))
	case len(c.databases) == 1:
		named, err := c.byName(c.databases[0])
		if err != nil {
			return err
		} else if named != nil {
			c.db, err = named.find(ctx)
			return err
		}
	}
	flag := strings.Join(c.databases, "")
	c.db, err = settings.Find(ctx, flag, len(c.databases) > 0, c.env, c.hostDatabase)
	return err
}

// host returns the settings of the host. It reads them once.
func (c *cli) host() (*host.Settings, error) {
	if c.settings != nil {
		return c.settings, nil
	}
	s, err := host.Load(host.Lookup(c.env), c.environ)
	if _, placed := errors.AsType[*manifest.Error](err); err != nil && !placed {
		err = &usageError{problem: err.Error()}
	}
	if err == nil {
		c.settings = s
	}
	return s, err
}

// hostDatabase returns the database that the host's settings name.
func (c *cli) hostDatabase(ctx context.Context) (url, from string, err error) {
	s, err := c.host()
	if err != nil {
		return "", "", err
	}
	return s.DatabaseURL(ctx)
}

// permissions returns what the host allows to steps that are defined in the store.
func (c *cli) permissions(set *host.Settings, s *store.Store) *executor.Host {
	known := c.db.Secrets()
	known.Share(c.given)
	h := set.Leaves(known)
	h.Own = own(s.Where())
	h.Direct = c.direct()
	return h
}

// direct returns the way that the SQL of jobs takes to the database, or nil.
func (c *cli) direct() *executor.Direct {
	if d := c.db.Direct; d != nil {
		return &executor.Direct{URL: d.URL, Login: d.Login, From: d.From}
	}
	return nil
}

// own reports whether the database is a file that only this user can write.
func own(where string) bool {
	path, file := strings.CutPrefix(where, "sqlite:")
	return file && host.OnlyOurs(path)
}

// open opens the database. Only the embedded default is created when it is used, and only by the
// commands that write definitions: a tick that lost its URL must not tick an empty file for ever.
func (c *cli) open(cmd *cobra.Command, a access) (*store.Store, error) {
	return c.openWithin(cmd.Context(), cmd, a)
}

// openWithin is open with another context. A store that is kept from another command is checked as a new one is: a
// newer program may have migrated the database meanwhile.
func (c *cli) openWithin(ctx context.Context, cmd *cobra.Command, a access) (*store.Store, error) {
	s := c.warm.take(ctx, c)
	if s == nil {
		var err error
		if s, err = c.connect(ctx, cmd, a); err != nil {
			return nil, err
		}
	}
	if a == alter || a == probe {
		return s, nil
	}
	if err := s.CheckSchema(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// connect opens the database that the command uses, and creates it if that is asked for.
func (c *cli) connect(ctx context.Context, cmd *cobra.Command, a access) (*store.Store, error) {
	if err := c.find(ctx); err != nil {
		return nil, err
	}
	missing := c.db.Embedded && !c.db.Exists()
	if missing && (a == use || a == probe) {
		return nil, &usageError{
			problem: "no database is set, and there is no embedded database at " + c.db.Path,
			hint:    "set DBJOBS_DATABASE_URL or --database, or create the embedded database with dbjobs apply, job create, schedule create, calendar import or migrate",
		}
	}
	if missing {
		c.say("creating the embedded database %s", c.db.Path)
	}
	patience, err := c.patience(cmd)
	if err != nil {
		return nil, err
	}
	c.opened = time.Now().Round(0)
	o := store.Options{Create: missing, Login: c.db.Login, Secrets: c.db.Secrets(), Patience: patience}
	s, err := store.Open(ctx, c.db.URL, o)
	if a == alter && errors.Is(err, store.ErrSchema) { // a missing SQLite file other than the embedded one
		c.say("creating the database %s", c.db.Display())
		o.Create = true
		s, err = store.Open(ctx, c.db.URL, o)
	}
	return s, err
}

// close ends the use of a store. A process that serves several commands keeps the store open for the next one.
func (c *cli) close(s *store.Store) {
	if !c.warm.keep(c, s) {
		s.Close()
	}
}

// with makes a command's body from a function that uses the database.
func (c *cli) with(fn func(ctx context.Context, s *store.Store, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return c.do(func(cmd *cobra.Command, args []string) error {
		s, err := c.open(cmd, use)
		if err != nil {
			return err
		}
		defer c.close(s)
		err = fn(cmd.Context(), s, cmd, args)
		done := err == nil || errors.Is(err, errChanged) || c.stdout.Flush() != nil // output is written when the change is done
		if done && rings(cmd) {
			c.ring(cmd.Context(), s)
		}
		return meant(cmd.Context(), s, err)
	})
}

// meant adds the probably meant name to an error about an unknown name.
func meant(ctx context.Context, s *store.Store, err error) error {
	m, ok := errors.AsType[*store.MissingError](err)
	if !ok {
		return err
	}
	job, number, labelled := strings.Cut(m.Name, "#")
	names, failed := s.Names(ctx, m)
	if failed != nil {
		return err // err is the answer; the search for a name is only a help
	}
	if m.Nearest = nearest.To(job, names); m.Nearest == job { // the job exists, so the run is missing
		m.Nearest = ""
	}
	if m.Nearest != "" && labelled {
		m.Nearest += "#" + number
	}
	return err
}

// prints adds --json to a command that prints facts.
func (c *cli) prints(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print JSON")
	return cmd
}

// print writes facts to standard output: v as JSON, or what human prints.
func (c *cli) print(v any, human func() error) error {
	if c.asJSON {
		return report.JSON(c.stdout, v)
	}
	return human()
}

// oneMore is the limit with which a list is read for shorten, which has to know whether there is one row more.
func oneMore(limit int) int { return max(limit, limit+1) } // the greatest number has none after it

// shorten returns a list as long as its limit allows, and says that there are more such rows. With --json, too: an array has no
// place for that, and a program would take it for all.
func shorten[T any](c *cli, list []T, limit int, rows string) []T {
	if len(list) <= limit {
		return list
	}
	c.say("there are more %s; raise --limit", rows)
	return list[:limit]
}

// envAnnotation marks a flag that an environment variable can set.
const envAnnotation = "dbjobs_variable"

// flagVariables are the environment variables that set flags, by flag.
var flagVariables = map[string]string{
	"log-format": "DBJOBS_LOG_FORMAT", "by": "DBJOBS_BY",
	"startup-id": "DBJOBS_STARTUP_ID", "for": "DBJOBS_FOR", "late": "DBJOBS_LATE", "queue": "DBJOBS_QUEUE",
	"name": "DBJOBS_NAME", "limit": "DBJOBS_LIMIT", "concurrency": "DBJOBS_CONCURRENCY", "budget": "DBJOBS_BUDGET", "grace": "DBJOBS_GRACE",
	"max-clock-skew": "DBJOBS_MAX_CLOCK_SKEW", "fail-on-job-error": "DBJOBS_FAIL_ON_JOB_ERROR", "metrics": metricsVariable,
	"wake": wakeVariable, "wake-lead": "DBJOBS_WAKE_LEAD",
	"listen": "DBJOBS_LISTEN", "timeout": "DBJOBS_REQUEST_TIMEOUT",
	"oidc-audience": "DBJOBS_OIDC_AUDIENCE", "oidc-caller": "DBJOBS_OIDC_CALLER", "oidc-issuer": "DBJOBS_OIDC_ISSUER",
}

// fromVariables lets environment variables set flags that are not given, and says so in the help of the
// command.
func fromVariables(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		f, name := cmd.Flag(flag), flagVariables[flag]
		f.Usage += " (" + name + ")"
		f.Annotations = map[string][]string{envAnnotation: {name}}
	}
}

// fromEnvironment sets each flag that was not given from its variable. An empty variable counts as not set.
func (c *cli) fromEnvironment(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names := f.Annotations[envAnnotation]
		if len(names) == 0 || f.Changed || err != nil {
			return
		}
		if value, _ := c.env(names[0]); value != "" {
			if bad := f.Value.Set(value); bad != nil {
				err = badInput("%s: %s", names[0], badValue(f, value, bad))
			}
		}
	})
	return err
}

// badValue says why a flag refused a value. The errors of strconv name its functions, and not what is wanted.
func badValue(f *pflag.Flag, value string, err error) string {
	number, ok := errors.AsType[*strconv.NumError](err)
	switch {
	case !ok:
		return err.Error()
	case f.Value.Type() == "bool":
		return fmt.Sprintf("found %s, want true or false", shown(value))
	case errors.Is(number.Err, strconv.ErrRange):
		return fmt.Sprintf("%s is out of range", shown(value))
	}
	return fmt.Sprintf("found %s, want a whole number", shown(value))
}

// durationFlag is a length of time on the command line, written as in a manifest.
type durationFlag struct{ *store.Duration }

func (d durationFlag) Set(s string) error { return d.UnmarshalText([]byte(s)) }
func (d durationFlag) Type() string       { return "duration" }
