package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/cmd/internal/webpage"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// facts reads what the page shows. Each statement stands alone and changes nothing. Each reads a limited number of
// rows, except those that read definitions.
func (c *cli) facts(ctx context.Context, s *store.Store, o pageOptions) (*webpage.Facts, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	since, err := instantFrom("since", o.since, ago, now)
	if err != nil {
		return nil, err
	}
	until, err := instantFrom("ahead", o.until, ahead, now)
	if err != nil {
		return nil, err
	}
	if !since.Before(now) {
		return nil, badInput("--since: %s is not before now", report.Instant(since))
	}
	if !until.After(now) {
		return nil, badInput("--ahead: %s is not after now", report.Instant(until))
	}
	p := &pageFacts{cli: c, index: map[int64]int{}, states: map[int64]string{}, Facts: &webpage.Facts{Made: webpage.Millis(now), From: webpage.Millis(since), Until: webpage.Millis(until),
		Version: build().Version, Database: c.text(c.db.Display()), Chosen: len(o.jobs) > 0,
		Cut: []string{}, Jobs: []webpage.Job{}, Gaps: []webpage.Gap{}, Silences: []webpage.Silence{}, Triggers: []webpage.Trigger{}}}
	runs, err := p.readRuns(ctx, s, o, since)
	if err != nil {
		return nil, err
	}
	for _, read := range []func() error{
		func() error { return p.readJobs(ctx, s, o, runs, now, until) },
		func() error { return p.readGaps(ctx, s, since) },
		func() error { return p.readTriggers(ctx, s, now, since) },
		func() error { return p.readAttention(ctx, s) },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	p.addRuns(runs)
	return p.Facts, nil
}

// pageFacts has the facts while they are read.
type pageFacts struct {
	*webpage.Facts
	cli    *cli
	index  map[int64]int    // of Jobs, by id: a job that was removed may have had the name of another one
	states map[int64]string // of jobs, also of those for which there is no room
	names  []string         // of the jobs of the page
}

// text returns a text from the database in the form that the page may show: without secrets, and without
// characters that control anything.
func (c *cli) text(s string) string { return report.Line(c.scrub(s)) }

func (p *pageFacts) cut(format string, args ...any) {
	p.Cut = append(p.Cut, fmt.Sprintf(format, args...))
}

// readRuns reads the newest runs, of all jobs or of the chosen ones, and those that have not ended, however old they are.
func (p *pageFacts) readRuns(ctx context.Context, s *store.Store, o pageOptions, since time.Time) (list []store.Run, err error) {
	names := o.jobs
	if len(names) == 0 {
		names = []string{""}
	}
	read := map[string]bool{} // a job may be named twice, with its owner and without
	for _, name := range names {
		for _, f := range []store.RunFilter{{Since: since}, {States: []string{store.Waiting, store.Queued, store.Running}}} {
			f.Job, f.Limit = name, o.limit+1
			runs, err := s.Runs(ctx, f)
			if err != nil {
				return nil, err
			}
			for i := range runs {
				if !read[runs[i].ID] {
					read[runs[i].ID], list = true, append(list, runs[i])
				}
			}
		}
	}
	slices.SortStableFunc(list, func(x, y store.Run) int { return y.CreatedAt.Compare(x.CreatedAt) })
	if len(list) > o.limit {
		list = list[:o.limit]
		oldest := list[len(list)-1].CreatedAt
		if oldest.Before(since) { // it has not ended; runs of that time that have ended were not read
			p.cut("Only the newest %s runs are shown; older ones that have not ended are left out; --limit shows more.", thousands(o.limit))
			return list, nil
		}
		p.From = webpage.Millis(oldest)
		p.cut("Only the newest %s runs are shown, those since %s; --limit shows more.", thousands(o.limit), report.Instant(oldest))
	}
	return list, nil
}

// readJobs reads the jobs with their coming times. If there are very many, it shows those with trouble and those
// that ran.
func (p *pageFacts) readJobs(ctx context.Context, s *store.Store, o pageOptions, runs []store.Run, now, until time.Time) error {
	jobs, err := chosenJobs(ctx, s, o.jobs)
	if err != nil {
		return err
	}
	for i := range jobs {
		p.states[jobs[i].ID] = jobs[i].State
	}
	if len(jobs) > pageJobs {
		p.cut("Only %s of %s are shown: those with trouble, those that ran, and some others.", thousands(pageJobs), report.Plural(len(jobs), "job"))
		ran := map[int64]bool{}
		for i := range runs {
			ran[runs[i].JobID] = true
		}
		rank := func(v store.JobStatus) int {
			switch {
			case v.Failing() || v.Parked != "" || v.PausedItself() || v.Overdue > 0:
				return 0
			case ran[v.ID]:
				return 1
			}
			return 2
		}
		slices.SortStableFunc(jobs, func(x, y store.JobStatus) int { return cmp.Compare(rank(x), rank(y)) })
		jobs = jobs[:pageJobs]
		slices.SortStableFunc(jobs, func(x, y store.JobStatus) int { return strings.Compare(x.Name, y.Name) })
	}
	times, err := tick.UpcomingByJob(ctx, s, jobs, now, until, min(400, max(8, pageTimes/max(1, len(jobs)))))
	if err != nil {
		return err
	}
	if err := tick.NextOutsidePauses(ctx, s, jobs); err != nil {
		return err
	}
	for i := range jobs {
		p.addJob(&jobs[i], times[i])
	}
	return nil
}

// chosenJobs reads the jobs with these names, each once, or all.
func chosenJobs(ctx context.Context, s *store.Store, names []string) (list []store.JobStatus, err error) {
	if len(names) == 0 {
		return s.Jobs(ctx, store.JobFilter{})
	}
	for _, name := range names {
		v, err := s.Job(ctx, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(j store.JobStatus) bool { return j.ID == v.ID }) {
			list = append(list, v)
		}
	}
	return list, nil
}

func (p *pageFacts) addJob(v *store.JobStatus, times tick.UpcomingTimes) {
	j := webpage.Job{Name: p.cli.text(v.FullName()), State: v.State, Schedule: p.cli.text(report.When(v.Job)), Itself: v.PausedItself(), Streak: v.Streak, Failing: v.Failing(),
		Error: p.cli.text(v.LastError), Next: webpage.Millis(v.NextRun), Ahead: make([]int64, 0, len(times.Times)), More: times.More}
	if v.Paused != nil {
		j.Why = p.cli.text(report.Paused(*v.Paused))
	}
	if v.CountsAsParked() {
		j.Parked = p.cli.text(v.Parked)
	}
	if v.Parked != "" { // its plan may stay due
		j.Next = 0
	}
	if v.Overdue >= store.Duration(store.OverdueAfter) {
		j.Overdue = webpage.Millis(v.OverdueSince())
	}
	for _, t := range times.Times {
		j.Ahead = append(j.Ahead, webpage.Millis(t))
	}
	p.index[v.ID], p.names = len(p.Jobs), append(p.names, v.FullName())
	p.Jobs = append(p.Jobs, j)
}

// job returns the index of a job in the page. A job that was removed, or for which there is no more room, gets an
// index for its history.
func (p *pageFacts) job(id int64, name string) int {
	i, known := p.index[id]
	if !known {
		i = len(p.Jobs)
		p.index[id] = i
		p.Jobs = append(p.Jobs, webpage.Job{Name: p.cli.text(name), State: cmp.Or(p.states[id], "removed"), Ahead: []int64{}})
	}
	return i
}

func (p *pageFacts) addRuns(runs []store.Run) {
	for i := range runs {
		r := &runs[i]
		name := r.FullJob()
		if r.Job == "" {
			name = fmt.Sprintf("job %d", r.JobID)
		}
		p.Runs.Add(p.job(r.JobID, name), r.State, r.ID, report.Origin(r), p.cli.text(r.Error), r.ScheduledFor, r.CreatedAt, r.StartedAt, r.FinishedAt)
	}
}

func (p *pageFacts) readGaps(ctx context.Context, s *store.Store, since time.Time) error {
	gaps, err := p.recentGaps(ctx, s, since)
	if len(gaps) > pageGaps {
		gaps = gaps[:pageGaps]
		p.cut("Only the newest %s times without a run are shown.", thousands(pageGaps))
	}
	for _, g := range gaps {
		p.Gaps = append(p.Gaps, webpage.Gap{Job: p.job(g.JobID, g.Job), From: webpage.Millis(g.From), Through: webpage.Millis(g.Through), Reason: g.Reason})
	}
	return err
}

// recentGaps reads the newest gaps, of all jobs or of the chosen ones: one more than the page has. It leaves out those that missed
// leaves out, such as those of which a backfill has made up for all times.
func (p *pageFacts) recentGaps(ctx context.Context, s *store.Store, since time.Time) (list []tick.MissedTimes, err error) {
	names := []string{""}
	if p.Chosen {
		names = p.names
	}
	for _, name := range names {
		gaps, err := tick.Missed(ctx, s, name, since, pageGaps+1)
		if err != nil {
			return nil, err
		}
		list = append(list, gaps...)
	}
	slices.SortStableFunc(list, func(x, y tick.MissedTimes) int { return y.Through.Compare(x.Through) })
	return list, nil
}

func (p *pageFacts) readTriggers(ctx context.Context, s *store.Store, now, since time.Time) error {
	triggers, err := s.Triggers(ctx)
	if err != nil {
		return err
	}
	if p.Hidden, err = s.PassesHidden(ctx); err != nil {
		return err
	}
	for _, t := range triggers {
		p.Triggers = append(p.Triggers, webpage.Trigger{Name: p.cli.text(t.Name), Last: webpage.Millis(t.LastAt), Error: p.cli.text(t.Error)})
	}
	silences, err := s.Silences(ctx, triggers, now, since)
	if len(silences) > pageSilences {
		silences = silences[:pageSilences]
		p.cut("Only the newest %s silences of triggers are shown.", thousands(pageSilences))
	}
	for _, v := range silences {
		p.Silences = append(p.Silences, webpage.Silence{Trigger: p.cli.text(v.Trigger), From: webpage.Millis(v.From), To: webpage.Millis(v.Until)})
	}
	return err
}

// readAttention reads what status says beside the lists of the page. It is about all jobs: a page of some leaves it out.
func (p *pageFacts) readAttention(ctx context.Context, s *store.Store) error {
	if p.Chosen {
		return nil
	}
	v, err := readStatus(ctx, s, shownOfKind)
	if err != nil {
		return err
	}
	for _, one := range v.Beside() {
		p.Attention = append(p.Attention, webpage.Attention{Kind: one.Kind, Text: p.cli.text(one.Text)})
	}
	return nil
}
