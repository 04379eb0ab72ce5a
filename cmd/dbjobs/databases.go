package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/nearest"
	"github.com/dbjobs/dbjobs/tick"
)

// choice is one of the databases that a command may serve.
type choice struct {
	name string // the name in messages, without a secret
	find func(context.Context) (settings.Database, error)
}

// several returns the databases of a pass, if there is more than one: those that the flags name, or else, if no
// variable names a database, those of the host's settings.
func (c *cli) several() (list []choice, err error) {
	switch {
	case len(c.databases) > 1:
		for i, value := range c.databases {
			if slices.Contains(c.databases[:i], value) {
				return nil, badInput("--database: the same database is given twice; give it once")
			}
			named, err := c.byName(value)
			if err != nil {
				return nil, err
			} else if named == nil {
				named = c.byURL(i, value)
			}
			list = append(list, *named)
		}
	case len(c.databases) == 0 && !settings.Named(c.env):
		set, err := c.host()
		if err != nil {
			return nil, err
		}
		if len(set.Databases) > 1 {
			for _, o := range set.Databases {
				list = append(list, *c.offered(set, o))
			}
		}
	}
	for _, name := range []string{instanceVariable, settings.DirectVariable, settings.DirectVariable + "_FILE"} {
		if value, _ := c.env(name); value != "" && list != nil {
			return nil, badInput("%s is for one database, and this command serves %d; unset it", name, len(list))
		}
	}
	return list, nil
}

// byURL returns the database of one --database among several. A value that is no URL is named by its position in
// messages, because it may be a password.
func (c *cli) byURL(i int, value string) *choice {
	db, err := settings.Of(value, "--database", c.env)
	name := fmt.Sprintf("database %d", i+1)
	if err == nil {
		name = db.Display()
	}
	return &choice{name, func(context.Context) (settings.Database, error) { return db, err }}
}

// isName reports whether a value of --database can be a name, and not a URL.
func isName(value string) bool { return value != "" && !strings.Contains(value, ":") }

// byName returns the database that has a name in the host's settings, or nil if the value is a URL.
func (c *cli) byName(value string) (*choice, error) {
	if !isName(value) {
		return nil, nil
	}
	set, err := c.host()
	if err != nil || len(set.Databases) == 0 {
		return nil, err
	}
	for _, o := range set.Databases {
		if o.Name == value {
			return c.offered(set, o), nil
		}
	}
	hint := "; they name " + strings.Join(set.DatabaseNames(), ", ")
	if n := nearest.To(value, set.DatabaseNames()); n != "" {
		hint = "; did you mean " + n + "?"
	}
	return nil, badInput("--database: the settings of this host name no database %s%s", shown(value), hint)
}

// offered returns a database of the host's settings. Its URL is read when it is needed.
func (c *cli) offered(set *host.Settings, o manifest.Offer) *choice {
	return &choice{o.Name, func(ctx context.Context) (settings.Database, error) {
		url, from, err := set.URL(ctx, o.Source)
		if err != nil {
			return settings.Database{}, err
		}
		db, err := settings.Of(url, from, c.env)
		if err == nil {
			db.Follow(func(ctx context.Context) (string, error) {
				url, _, err := set.URL(ctx, o.Source)
				return url, err
			})
		}
		return db, err
	}}
}

// findEach finds the one database, or each of several, and opens none. Of several, those that cannot be found stop the others only
// if they are all, as in a pass.
func (c *cli) findEach(cmd *cobra.Command) error {
	list, err := c.several()
	if list == nil && err == nil {
		return c.find(cmd.Context())
	}
	var wrong []error
	for i := range list {
		if _, bad := list[i].find(cmd.Context()); bad != nil {
			wrong = append(wrong, ofDatabase(list[i].name, bad))
		}
	}
	if err != nil || len(wrong) == len(list) {
		return errors.Join(append(wrong, err)...)
	}
	for _, bad := range wrong {
		c.tell(slog.LevelWarn, "%v", bad)
	}
	return nil
}

// ofDatabase returns the error for a database that cannot be found. The name is empty if there is only one
// database.
func ofDatabase(name string, err error) error {
	if name == "" {
		return err
	}
	if err = unfound(err); errors.Is(err, store.ErrUnreachable) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return badInput("%s: %v", name, err)
}

// served is the result for one database of several.
type served struct {
	Database string          `json:"database"`
	Exit     int             `json:"exit"`
	Errors   []string        `json:"errors,omitempty"`
	Report   json.RawMessage `json:"report,omitempty"` // as the same command prints it for a single database
}

// servedAll is what --json prints of a pass over several databases, in the order in which they were given.
type servedAll struct {
	Databases []served `json:"databases"`
	// Untold has the heartbeat signal of the host that no service took. It is of no database.
	Untold []tick.Untold `json:"untold,omitempty"`
}

// serveEach makes one pass on each database, all in parallel. Each pass has the whole budget and the whole
// concurrency, and none waits for another. A failure on one database stops none of the others.
func (c *cli) serveEach(cmd *cobra.Command, f *tickFlags, list []choice, run passFunc, human printFunc) error {
	ctx, began := cmd.Context(), time.Now()
	beat, err := c.beginHeartbeat(ctx, f)
	if err != nil {
		return c.unbegun(ctx, f, err)
	}
	all, one := make([]served, len(list)), *f
	one.monitored = false // a success on one database must not hide a failure on another
	var blocks, file sync.Mutex
	blank := ""
	stderr := &lines{w: c.stderr}
	var passes sync.WaitGroup
	for i := range list {
		passes.Go(func() {
			in, out := c.forOne(&list[i], stderr)
			figures, err := in.onePass(cmd, &one, run, human)
			file.Lock()
			in.writeMetrics(f.metrics, figures, without(list, i)...)
			file.Unlock()
			all[i] = in.outcome(ctx, out, err)
			if out.Len() > 0 && !c.asJSON {
				blocks.Lock()
				defer blocks.Unlock()
				fmt.Fprintf(c.stdout, "%s%s:\n%s", blank, list[i].name, out)
				blank = "\n" // between two blocks
			}
		})
	}
	passes.Wait()
	err = worst(all)
	c.told = c.told || err != nil // each pass has reported its own error
	answer := servedAll{Databases: all}
	line := report.Plural(len(list), "database") + " served"
	if untold := c.endHeartbeat(ctx, beat, f.patience(time.Since(began)), line, err); untold != nil {
		answer.Untold = []tick.Untold{{Error: c.scrub(untold.Error())}}
		c.tellUntold(answer.Untold[0])
	}
	if c.asJSON {
		err = errors.Join(err, report.JSON(c.stdout, answer))
	}
	return err
}

// without returns the names of the databases but one.
func without(list []choice, i int) (names []string) {
	for k := range list {
		if k != i {
			names = append(names, list[k].name)
		}
	}
	return names
}

// forOne returns the same command line for one database of several, and the buffer into which it prints facts. Its
// messages begin with the name of the database.
func (c *cli) forOne(one *choice, stderr io.Writer) (*cli, *bytes.Buffer) {
	in, out := *c, &bytes.Buffer{}
	in.chosen, in.warm, in.stderr = one, nil, stderr
	in.stdout = &report.Output{Writer: bufio.NewWriter(out), Width: c.stdout.Width, Colour: c.stdout.Colour}
	return &in, out
}

// outcome returns how the pass on one database ended, and reports its error.
func (c *cli) outcome(ctx context.Context, out *bytes.Buffer, err error) served {
	err = errors.Join(err, c.stdout.Flush()) // into memory
	s := served{Database: c.chosen.name, Exit: exitCode(ctx, err)}
	if s.Exit != exitDone {
		s.Errors = c.explain(s.Exit, err)
		c.complain(s.Exit, err)
	}
	if c.asJSON && out.Len() > 0 {
		s.Report = bytes.Clone(out.Bytes())
	}
	return s
}

// severity has the exit codes of a pass, the least bad first: a problem that passes without help comes before one
// that somebody has to solve.
var severity = []int{exitDone, exitJobFailed, exitDatabase, exitSchema, exitFailed, exitUsage, exitInterrupted}

// worst returns an error with the worst exit code and all errors; nil if all passes succeeded.
func worst(all []served) error {
	e := &severalError{}
	for _, s := range all {
		if slices.Index(severity, s.Exit) > slices.Index(severity, e.code) {
			e.code = s.Exit
		}
		for _, line := range s.Errors {
			e.errs = append(e.errs, errors.New(s.Database+": "+line))
		}
	}
	if e.code == exitDone {
		return nil
	}
	return e
}

// severalError joins the errors of several databases.
type severalError struct {
	code int
	errs []error
}

func (e *severalError) Error() string   { return errors.Join(e.errs...).Error() }
func (e *severalError) Unwrap() []error { return e.errs }

// lines lets several goroutines write to the same writer, one message at a time.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(text)
}
