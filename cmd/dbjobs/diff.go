package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// errDiffers ends the command diff if apply would change something. The output has already said everything.
var errDiffers = errors.New("the database differs")

// answers2 marks a command whose exit code 2 is an answer, and not a mistake.
const answers2 = "dbjobs_answers_2"

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
		Annotations: map[string]string{answers2: "true"},
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

// preview has jobs and schedules as they are now, and as they will be.
type preview struct {
	now       time.Time
	jobs      map[string]*store.JobStatus   // as they are, by full name
	users     map[string][]*store.JobStatus // of shared schedules
	observers map[string][]*store.JobStatus // of calendars
	rules     map[int64][]store.Rule        // as they are
	to        map[string]store.Job          // in the file, by name
	schedules map[string]store.Schedule     // as they are to be
	calendars map[string]*store.Calendar    // as they are to be
	old       map[string]*store.Calendar    // as they are: those whose days change; only by beforeDays
}

func newPreview(ctx context.Context, s *store.Store, m *manifest.Manifest) (*preview, error) {
	p := &preview{jobs: map[string]*store.JobStatus{}, users: map[string][]*store.JobStatus{}, observers: map[string][]*store.JobStatus{},
		to: map[string]store.Job{}, schedules: map[string]store.Schedule{}}
	list, err := s.Jobs(ctx, store.JobFilter{})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(list))
	for i := range list {
		v := &list[i]
		ids[i], p.jobs[v.FullName()] = v.ID, v
		for _, name := range v.Schedules {
			p.users[name] = append(p.users[name], v)
		}
	}
	if p.rules, _, err = s.RulesOfJobs(ctx, ids); err != nil {
		return nil, err
	}
	for i := range list {
		for _, r := range p.rules[list[i].ID] {
			if name := r.Schedule.Calendar; name != "" {
				p.observers[name] = append(p.observers[name], &list[i])
			}
		}
	}
	if p.now, err = s.Now(ctx); err != nil {
		return nil, err
	}
	for _, j := range m.Jobs {
		p.to[j.Name] = j
	}
	there, err := s.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	for _, sc := range there {
		p.schedules[sc.Name] = sc
	}
	for _, sc := range m.Schedules {
		if sc.CreatedAt.IsZero() { // see readWorld
			sc.CreatedAt = p.now
		}
		p.schedules[sc.Name] = sc
	}
	p.calendars, err = s.KnownCalendars(ctx, p.definitions(m.Calendars))
	return p, err
}

// definitions returns the schedules and the jobs of the preview, which may name calendars, together with these
// calendars.
func (p *preview) definitions(calendars []store.Calendar) store.Definitions {
	d := store.Definitions{Calendars: calendars, Schedules: slices.Collect(maps.Values(p.schedules)), Jobs: slices.Collect(maps.Values(p.to))}
	for _, v := range p.jobs {
		d.Jobs = append(d.Jobs, v.Job)
	}
	return d
}

// rename lets a renamed definition be found by its new name, too.
func (p *preview) rename(ch store.Change) {
	for _, f := range ch.Fields {
		if f.Field != "name" {
			continue
		}
		if ch.Kind == "schedule" {
			p.users[ch.Subject] = p.users[f.Before]
			for _, v := range p.users[ch.Subject] {
				v.Schedules = slices.Clone(v.Schedules)
				for i, name := range v.Schedules {
					if name == f.Before {
						v.Schedules[i] = ch.Subject
					}
				}
				for i := range p.rules[v.ID] {
					if is := &p.rules[v.ID][i]; is.Schedule.Name == f.Before && is.Text != "" { // else ~ has other values by the new name
						is.Schedule.Name = ch.Subject
					}
				}
			}
			continue
		}
		owner := strings.TrimSuffix(ch.Subject, ch.PlainSubject())
		if is := p.jobs[owner+f.Before]; is != nil {
			p.jobs[ch.Subject] = is
		}
	}
}

// times returns the times of a job as it is now, and as it will be. If the file has a job with the name inFile,
// the job will be as it is there.
func (p *preview) times(full, inFile string) report.Times {
	t := report.Times{Job: full, Before: []time.Time{}, After: []time.Time{}}
	will := store.JobStatus{}
	was := store.Duration(0)
	if is := p.jobs[full]; is != nil {
		was, will = is.RepeatAfter, *is
		t.Before = append(t.Before, p.next(*is, p.rules[is.ID], was)...)
	}
	if j, ok := p.to[inFile]; ok {
		j.ID, j.CreatedAt = will.ID, will.CreatedAt
		if j.Owner = will.Owner; j.CreatedAt.IsZero() {
			j.CreatedAt, j.Owner = p.now, strings.TrimSuffix(strings.TrimSuffix(full, inFile), "/")
		}
		decide.KeepStart(&j, &will.Job, p.now)
		will.Job, will.Parked = j, ""
	}
	if will.Own != nil {
		own := *will.Own
		own.CreatedAt = p.now
		for _, r := range p.rules[will.ID] {
			if r.Schedule.Name == "" { // the job has a rule of its own already: a new text, or other days, count from when that was made
				own.CreatedAt = r.Schedule.CreatedAt
			}
		}
		will.Own = &own
	}
	t.After = append(t.After, p.next(will, p.rulesOf(&will.Job, p.rules[will.ID]), was)...)
	return t
}

// rulesOf returns the rules of a job as it will be. Rules that do not change are taken from the plan.
func (p *preview) rulesOf(j *store.Job, planned []store.Rule) (list []store.Rule) {
	add := func(name string, s store.Schedule) {
		for _, r := range planned {
			if is := r.Schedule; is.Name == name && is.Rule == s.Rule && is.Zone == s.Zone && is.Nonexistent == s.Nonexistent && is.Ambiguous == s.Ambiguous && p.sameHolidays(&r, &s) {
				list = append(list, r)
				return
			}
		}
		list = append(list, store.Rule{Linked: true, Schedule: s, Calendar: p.calendars[s.Calendar]})
	}
	if j.Own != nil {
		add("", *j.Own)
	}
	for _, name := range j.Schedules {
		add(name, p.schedules[name])
	}
	return list
}

// sameHolidays reports whether a schedule uses the calendar that it was planned with. Without a calendar, on_holiday says
// nothing, and rules of the plan have one all the same.
func (p *preview) sameHolidays(r *store.Rule, s *store.Schedule) bool {
	will := p.calendars[s.Calendar]
	if r.Schedule.Calendar != s.Calendar || s.Calendar != "" && r.Schedule.OnHoliday != s.OnHoliday || (r.Calendar == nil) != (will == nil) {
		return false
	}
	return will == nil || r.Calendar.Version() == will.Version()
}

// next returns the next times of a job. was is its repeat_after in the database.
func (p *preview) next(v store.JobStatus, list []store.Rule, was store.Duration) []time.Time {
	const shown = 3
	if v.RepeatAfter > 0 {
		v.NextRun = decide.NextRepeat(&v, was, p.now)
	}
	n, err := decide.NewNominal(&v.Job, list)
	if err != nil {
		return nil
	}
	return n.Forecast(p.now, &v, shown).Next
}
