package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// alters completes a command that changes a definition in place.
func (c *cli) alters(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "only print the changes; write nothing")
	return c.prints(c.authored(cmd))
}

// resets adds --reset to a command.
func resets(cmd *cobra.Command, into *[]string) {
	cmd.Flags().StringArrayVar(into, "reset", nil, "give the field of this `FLAG` its default again; may be given several times")
}

func (c *cli) jobAlter() *cobra.Command {
	e := manifest.Edit{Command: "job alter"}
	cmd := &cobra.Command{
		Use: "alter NAME", Short: "Change a job in place", Args: positional("NAME"),
		Long: `Changes the fields that the flags name, and nothing else of the job. A flag that may be given several times replaces
all of its values; --schedule replaces all schedules, and the job's own rule; --rule changes the job's own rule, and leaves
its schedules. --reset FLAG gives a field its default again.
Flags of a step change the only step of the job; if it has several, use dbjobs job step alter.

The command prints each field before and after, and the next times before and after. The next tick uses the
change. If the job comes from a manifest, the next apply of that file changes the job back, unless you change the file too:
dbjobs diff shows the difference, and dbjobs export prints what the file should contain.`,
		Example: `  dbjobs job alter rollup --rule "every 10m" --timeout 5m --dry-run
  dbjobs job alter rollup --schedule nightly --reset timeout --reason "it is fast enough now"`,
	}
	given := definitionFlags(cmd, manifest.AlterFlags())
	resets(cmd, &e.Reset)
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		if e.Given = given(); len(e.Given)+len(e.Reset) == 0 {
			return badInput("job alter needs a flag that says what to change; see dbjobs job alter --help")
		}
		e.Now = time.Now()
		var kept []string // the schedules of a job that gets its first rule of its own
		err := c.alterJob(ctx, s, args[0], func(j store.Job) (*manifest.Manifest, error) {
			m, err := e.Job(j)
			if kept = nil; err == nil && j.Own == nil && m.Jobs[0].Own != nil {
				kept = m.Jobs[0].Schedules
			}
			return m, err
		})
		if err == nil && len(kept) > 0 && !cmd.Flags().Changed("schedule") {
			c.sayKept(args[0], kept)
		}
		return err
	})
	return c.alters(cmd)
}

// sayKept says by which schedules a job still runs that has got a rule of its own, and how to take them away.
func (c *cli) sayKept(job string, schedules []string) {
	what, drops := "schedule", make([]string, 0, len(schedules))
	if len(schedules) > 1 {
		what = "schedules"
	}
	for _, name := range schedules {
		drops = append(drops, "`dbjobs job schedule drop "+store.Argument(job)+" "+store.Argument(name)+"`")
	}
	c.say("job %s runs by its %s %s, too: --rule gives it a rule beside that; for the rule alone, %s", job, what, strings.Join(schedules, ", "), strings.Join(drops, ", "))
}

// alterJob changes a job in place and prints what changed. It calls edit twice: first to check the names that the
// edit uses, and then on the job as it is when the change is written.
func (c *cli) alterJob(ctx context.Context, s *store.Store, name string, edit func(store.Job) (*manifest.Manifest, error)) error {
	v, err := s.Job(ctx, name)
	if err != nil {
		return err
	}
	m, err := edit(v.Job)
	if err != nil {
		return err
	}
	if err := c.resolveIn(ctx, s, m); err != nil {
		return err
	}
	shared := m.Shared
	p, err := newJobPreview(ctx, s, &v, &m.Jobs[0])
	if err != nil {
		return err
	}
	r, err := s.AlterJob(ctx, v.FullName(), store.AlterOptions{DryRun: c.dryRun, Start: decide.Start, First: decide.First, Author: c.author(s)}, func(j store.Job) (store.Job, error) {
		edited, err := edit(j)
		if err != nil { // somebody else has changed the job since it was read
			return j, err
		}
		m = edited
		return m.Jobs[0], nil
	})
	if err != nil {
		return m.Place(err)
	}
	m.Shared = shared // the edit was not resolved again
	w, err := readWorld(ctx, s, m)
	c.unknown("what holidays do to the next times", err)
	a := report.NewAltered(c.dryRun, r.Changes)
	if len(r.Changes) > 0 {
		p.jobs[v.FullName()], p.to[v.Name] = &r.Before, r.After
		a.Times = append(a.Times, p.times(v.FullName(), v.Name))
	}
	a.Warnings = c.warnings(m, r.Changes, w)
	c.warn(a.Warnings)
	return c.print(a, func() error {
		c.sayAltered("job "+v.FullName(), v.Manifest, a)
		return a.Print(c.stdout)
	})
}

// sayAltered says what happens after a change in place.
func (c *cli) sayAltered(what, owner string, a report.Altered) {
	if len(a.Changes) == 0 || a.DryRun {
		return
	}
	c.say("changed %s; the next dbjobs tick uses it", what)
	if owner != "" {
		c.say("%s is from the manifest %s, and its next apply changes it back; to prevent that, change the file too (dbjobs diff shows what differs)", what, shown(owner))
	}
}
