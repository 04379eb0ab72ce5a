package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

// errDiffers ends the command diff if apply would change something. The output has already said everything.
var errDiffers = errors.New("the database differs")

// mistakeCode marks a command whose answers have exit codes that mistakes usually have. It is the code of a mistake.
const mistakeCode = "dbjobs_mistake_code"

func (c *cli) diff() *cobra.Command {
	var paths []string
	var isStrict bool
	o := store.ApplyOptions{DryRun: true}
	cmd := &cobra.Command{
		Use:   "diff -f jobs.yaml",
		Short: "Show what apply would change, and write nothing",
		Long: `Shows each difference between the database and a manifest: what apply would create, change and remove, with the
old and the new value of each field, and the next times before and after. A login with the right to read is enough.

A definition that is no longer in the manifest is not a difference, since apply leaves it alone. With --prune it is one.

Exit codes: 0 no difference, 1 failed or bad input, 2 there are differences; 4, 5 and 130 as for each command.`,
		Example: `  dbjobs diff -f jobs.yaml
  dbjobs diff -f jobs.yaml --prune --json`,
		Args:        positional(),
		Annotations: map[string]string{mistakeCode: strconv.Itoa(exitFailed)},
	}
	c.reads(cmd, &paths, &o)
	strict(cmd, &isStrict, "exit with code 1 if a difference has warnings")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		m, err := c.manifest(cmd, paths, &o)
		if err != nil {
			return err
		}
		changes, w, err := c.change(cmd, m, o)
		if err != nil {
			return err
		}
		d, err := c.difference(cmd, m, changes)
		if err != nil {
			return err
		}
		if d.Warnings = c.warnings(m, changes, w); !isStrict {
			c.warn(d.Warnings)
		}
		if err := c.print(d, func() error { return report.Differences(c.stdout, d) }); err != nil || !d.Differs {
			return err
		}
		if isStrict && len(d.Warnings) > 0 {
			return refused(d.Warnings)
		}
		c.told = true
		return errDiffers
	})
	return c.prints(cmd)
}

// difference returns what changes do, with the texts of new definitions and the times that move.
func (c *cli) difference(cmd *cobra.Command, m *manifest.Manifest, changes []store.Change) (d report.Difference, err error) {
	d = report.Difference{Manifest: m.Name, Changes: report.List(changes), Times: []report.Times{}, New: map[string]string{}}
	d.Differs = slices.ContainsFunc(changes, func(ch store.Change) bool { return ch.Action != "left" && ch.Action != "done" })
	if !d.Differs {
		return d, nil
	}
	s, err := c.open(cmd, use)
	if err != nil {
		return d, err
	}
	defer c.close(s)
	login, err := s.Login(cmd.Context())
	if err != nil {
		return d, err
	}
	text := m.Texts(login)
	for _, ch := range changes {
		if ch.Action == "create" {
			if d.New[ch.Kind+" "+ch.Subject], err = text(ch.Kind, ch.PlainSubject()); err != nil {
				return d, err
			}
		}
	}
	p, err := newPreview(cmd.Context(), s, m)
	if err == nil {
		d.Times = p.moved(changes)
	}
	return d, err
}

// moved returns the next times, before and after, of the jobs for which these times differ. If there are many
// such jobs, it returns only the first ones.
func (p *preview) moved(changes []store.Change) []report.Times {
	const most = 1000
	moved := []report.Times{}
	add := func(t report.Times) {
		if len(moved) < most && !slices.EqualFunc(t.Before, t.After, time.Time.Equal) {
			moved = append(moved, t)
		}
	}
	seen, gone := map[string]bool{}, map[*store.JobStatus]bool{} // gone: no job has this name any more
	for _, ch := range changes {
		if ch.Action == "rename" { // under its new name
			p.rename(ch)
		}
		if ch.Kind == "job" && (ch.Action == "rename" || ch.Action == "remove") {
			gone[p.jobs[ch.Subject]] = true
		}
		if ch.Kind == "job" && !seen[ch.Subject] && (ch.Action == "rename" || ch.Action == "create" || ch.Action == "change") {
			seen[ch.Subject] = true
			add(p.times(ch.Subject, ch.PlainSubject()))
		}
	}
	for _, ch := range changes {
		users := p.users[ch.Subject]
		if ch.Kind == "calendar" {
			users = p.observers[ch.Subject]
		}
		moves := ch.Action == "change" && ch.Kind == "calendar" || (ch.Action == "change" || ch.Action == "rename") && ch.Kind == "schedule"
		if !moves {
			continue
		}
		for _, v := range users {
			if name := v.FullName(); !seen[name] && !gone[v] {
				seen[name] = true
				add(p.times(name, ""))
			}
		}
	}
	return moved
}

// beforeDays returns the preview of a manifest that changes the days of a calendar; nil: it changes none.
func beforeDays(ctx context.Context, s *store.Store, m *manifest.Manifest) (p *preview, err error) {
	if len(m.Calendars) == 0 {
		return nil, nil
	}
	there, err := s.Calendars(ctx)
	if err != nil {
		return nil, err
	}
	old := map[string]*store.Calendar{}
	for i := range there {
		is := &there[i]
		if slices.ContainsFunc(m.Calendars, func(c store.Calendar) bool { return c.Name == is.Name && c.Version() != is.Version() }) {
			old[is.Name] = is
		}
	}
	if len(old) == 0 {
		return nil, nil
	}
	if p, err = newPreview(ctx, s, m); err == nil {
		p.old = old
	}
	return p, err
}

// starved returns the jobs that would have times with the old days of calendars, and have none with the new ones.
func (p *preview) starved(changes []store.Change) (jobs []string) {
	inFile, gone, names := map[string]string{}, map[*store.JobStatus]bool{}, map[*store.JobStatus]string{}
	for _, ch := range changes {
		if ch.Action == "rename" {
			p.rename(ch)
		}
		switch is := p.jobs[ch.Subject]; {
		case ch.Kind != "job":
			continue
		case ch.Action == "remove":
			gone[is] = true
		case ch.Action == "rename":
			names[is] = ch.Subject
		}
		inFile[ch.Subject] = ch.PlainSubject()
	}
	was, seen := *p, map[*store.JobStatus]bool{}
	was.calendars = maps.Clone(p.calendars)
	maps.Copy(was.calendars, p.old)
	for calendar := range p.old {
		for _, v := range p.observers[calendar] {
			name := cmp.Or(names[v], v.FullName())
			known := gone[v] || seen[v]
			if seen[v] = true; known || len(p.times(name, inFile[name]).After) > 0 {
				continue
			}
			if len(was.times(name, inFile[name]).After) > 0 {
				jobs = append(jobs, name)
			}
		}
	}
	slices.Sort(jobs)
	return jobs
}
