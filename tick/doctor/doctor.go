// Package doctor examines a database of dbjobs, and says what is wrong and what to do about it. It only
// reads.
//
// It looks for damage that does not come from the program, but from people, restored copies and broken
// disks: rows that contradict each other, nominal times that have neither a run nor a gap, plans without
// jobs. It also looks at the things on which dbjobs depends: the trigger, the clock, the rights of the
// login, the settings of the server, the tables and their indexes.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	Wrong   Level = "error"   // something is lost, done twice, or does not work
	Warning Level = "warning" // something will not work, or is not as somebody wants it
	Note    Level = "note"    // worth knowing; nothing is broken
)

func (l Level) rank() int { return slices.Index([]Level{Wrong, Warning, Note}, l) }

// Finding is one thing that is wrong.
type Finding struct {
	Check   string `json:"check"` // the kind; these names do not change
	Level   Level  `json:"level"`
	Job     string `json:"job,omitempty"`
	Problem string `json:"problem"`
	Advice  string `json:"advice"`
}

// Report is what an examination found, the worst first.
type Report struct {
	Findings []Finding `json:"findings"`
	Jobs     int       `json:"jobs"`
	Times    int       `json:"nominal_times"`     // the number of times that were compared with runs and gaps
	Since    time.Time `json:"since"`             // the instant from which these times count
	Shorter  int       `json:"shorter_jobs"`      // the number of jobs of which not all times since then were compared
	Stopped  string    `json:"stopped,omitempty"` // why the examination did not come to its end: there may be more findings
}

// Bad reports whether there are findings other than notes.
func (r *Report) Bad() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level != Note })
}

// Options are what the program knows.
type Options struct {
	Clock   func() time.Time // of this machine
	Version string           // of this program
	Since   time.Time        // nominal times before this are not looked at

	// Direct tries the second way to the database, which the SQL of jobs takes. Nil: there is none.
	Direct func(context.Context, *store.Store) error
}

// most is how many findings of one kind are reported; the last one says that there are more.
const most = 20

const (
	// patient is how long a pass may take to come, if the trigger comes regularly, and seldom if it does not: by alarms, by the
	// hour or by hand. Work that waits for a pass waits no longer than that.
	patient = 10 * time.Minute
	seldom  = time.Hour
	// away is how long no pass comes by any trigger: it is more than the time between two of a daily one.
	away = 48 * time.Hour
	// lately is how long ago a trigger may have been set up that dies after a few passes.
	lately = 7 * 24 * time.Hour
)

// exam is one examination.
type exam struct {
	s    *store.Store
	o    Options
	now  time.Time // by the clock of the database
	jobs []store.JobStatus
	of   map[int64]*store.JobStatus
	// ticking says that the trigger has not died, and that dbjobs is not frozen and was not just now. So work that waits for a
	// pass may be stuck: see left.
	ticking bool
	began   time.Time // when the newest pass began
	frozen  bool      // everything is paused, or was just now
	report  Report
	found   map[string]int // by kind
	shorter map[int64]bool // the jobs that Report.Shorter counts, by id
}

// Examine examines a database. An error means that it could not continue; the findings up to then are in
// the report.
func Examine(ctx context.Context, s *store.Store, o Options) (Report, error) {
	e := &exam{s: s, o: o, of: map[int64]*store.JobStatus{}, found: map[string]int{}, shorter: map[int64]bool{}, report: Report{Findings: []Finding{}, Since: o.Since}}
	err := e.all(ctx)
	if err != nil {
		e.report.Stopped = err.Error()
	}
	slices.SortStableFunc(e.report.Findings, func(x, y Finding) int { return cmp.Compare(x.Level.rank(), y.Level.rank()) })
	return e.report, err
}

func (e *exam) all(ctx context.Context) error {
	schema, err := e.s.Schema(ctx)
	if err != nil {
		return err
	}
	hidden, err := e.s.Hidden(ctx, schema)
	if err != nil {
		return err
	}
	if len(hidden) > 0 { // what is not seen would count as gone below
		e.find("rights", Wrong, "", "ALTER TABLE … DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY; or a policy for each table: CREATE POLICY … TO the login of the ticks USING (true); "+
			"logins that must not reach each other's jobs are kept apart by dbjobs migrate --owners",
			"row security may hide rows of tables from this login, or keep it from locking them, so a pass under it decides nothing, and the rest was not examined: %s", list(hidden, 20))
		return nil
	}
	if err := schema.Check(); err != nil {
		e.find("schema", Wrong, "", "run dbjobs migrate with the newest version of dbjobs", "%v", err)
		return nil
	}
	if schema.Outdated {
		e.find("views", Warning, "", "run dbjobs migrate", "the views and routines are not those of this version of dbjobs")
	}
	for _, part := range []func(context.Context) error{e.clock, e.server, e.direct, e.triggers, e.readJobs, e.damages, e.definitions, e.calendars, e.times} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// find adds a finding. Of one kind, only the first ones are added.
func (e *exam) find(check string, l Level, job, advice, problem string, a ...any) {
	e.found[check]++
	switch n := e.found[check]; {
	case n < most:
		e.report.Findings = append(e.report.Findings, Finding{check, l, job, fmt.Sprintf(problem, a...), advice})
	case n == most:
		e.report.Findings = append(e.report.Findings, Finding{check, l, "", "there is more of this kind", "mend the first ones, and run dbjobs doctor again"})
	}
}

// direct tries the second way to the database: runs that need it fail if it leads nowhere, while all else goes well.
func (e *exam) direct(ctx context.Context) error {
	if e.o.Direct == nil {
		return nil
	}
	if err := e.o.Direct(ctx, e.s); ctx.Err() == nil && err != nil {
		e.find("direct", Wrong, "", "correct the setting, or unset it; until then no run with SQL can begin here", "%v", err)
	}
	return ctx.Err()
}

// clock compares the clock of the database with the clock of this machine. The database's clock decides.
func (e *exam) clock(ctx context.Context) (err error) {
	before := e.o.Clock()
	if e.now, err = e.s.Now(ctx); err != nil {
		return err
	}
	after := e.o.Clock()
	off := time.Duration(0)
	switch {
	case e.now.Before(before):
		off = before.Sub(e.now)
	case e.now.After(after):
		off = e.now.Sub(after)
	}
	if off > 2*time.Second {
		e.find("clock", Warning, "", "let NTP set both clocks; the clock of the database decides what is due",
			"the clock of the database and that of this machine differ by %s", store.Duration(off.Round(time.Second)))
	}
	return nil
}

func (e *exam) readJobs(ctx context.Context) (err error) {
	e.jobs, err = e.s.Jobs(ctx, store.JobFilter{})
	for i := range e.jobs {
		e.of[e.jobs[i].ID] = &e.jobs[i]
	}
	e.report.Jobs = len(e.jobs)
	return err
}

// triggers looks at the passes: nothing runs without them.
func (e *exam) triggers(ctx context.Context) error {
	list, err := e.s.Triggers(ctx)
	if err != nil {
		return err
	}
	var last store.Trigger
	for _, t := range list {
		if t.LastAt.After(last.LastAt) {
			last = t
		}
		if began := t.LastAt.Add(-time.Duration(t.Took)); began.After(e.began) { // a pass is recorded when it ends
			e.began = began
		}
		if e.now.Sub(t.LastAt) < 24*time.Hour && t.Version != e.o.Version {
			e.find("version", Note, "", "after an upgrade, replace the program on all hosts",
				"the trigger %s runs version %s of dbjobs on %s; this is version %s", t.Name, t.Version, t.Holder, e.o.Version)
		}
		if t.Error != "" && e.now.Sub(t.LastAt) < 24*time.Hour {
			e.find("pass", Warning, "", "look at what the tick on "+t.Holder+" prints", "the last pass of the trigger %s failed: %s", t.Name, t.Error)
		}
	}
	hidden, err := e.s.PassesHidden(ctx)
	if err != nil {
		return err
	}
	age := e.now.Sub(last.LastAt)
	died, err := e.died(ctx, last)
	if err != nil {
		return err
	}
	e.ticking = len(list) > 0 && !died
	switch {
	case hidden && age >= patient: // then jobs that wait for a pass are what is wrong
		e.ticking, e.began = true, e.now
		e.find("trigger", Note, "", "ask who runs the ticks; what waits for one too long is named here",
			"this login sees no ticks of other logins: rows have owners")
	case len(list) == 0:
		e.find("trigger", Wrong, "", "let cron, a systemd timer or a cloud scheduler start dbjobs tick each minute", "no pass of a tick is on record: nothing runs")
	case died:
		e.find("trigger", Warning, "", "look at the trigger on "+last.Holder+": a crontab line, a timer, a rule in a cloud",
			"the last pass came %s ago", store.Duration(age.Truncate(time.Second)))
	case age > away:
		e.find("trigger", Note, "", "if passes should come more often, look at what starts dbjobs tick on "+last.Holder,
			"the last pass came %s ago, and none came regularly before", store.Duration(age.Truncate(time.Second)))
	}
	thaw, err := e.s.Thawed(ctx)
	if err != nil {
		return err
	}
	if e.now.Sub(thaw) < patient { // perhaps no pass has come since
		e.ticking, e.frozen = false, true
	}
	pauses, err := e.s.Pauses(ctx, false, 10_000)
	for _, p := range pauses {
		if p.Scope == store.ScopeAll {
			e.ticking, e.frozen = false, true
			e.find("frozen", Note, "", "dbjobs unfreeze ends it", "everything is paused since %s", p.Since.UTC().Format(time.RFC3339))
		}
	}
	return err
}

// died reports whether the trigger of the last pass came regularly before, and does not come any more. One that comes by alarms,
// or by the hour, never counts as dead: what waits for it tells more.
func (e *exam) died(ctx context.Context, last store.Trigger) (bool, error) {
	if last.Name == "" || e.now.Sub(last.LastAt) < patient {
		return false, nil
	}
	silences, err := e.s.Silences(ctx, []store.Trigger{last}, e.now, e.now.Add(-lately))
	return len(silences) > 0 && silences[0].Until.IsZero(), err
}

// left reports whether what needs a pass since an instant is stuck: a pass has begun since then, or should have.
func (e *exam) left(since time.Time) bool {
	return e.ticking && (e.began.After(since) || e.now.Sub(since) >= seldom)
}
