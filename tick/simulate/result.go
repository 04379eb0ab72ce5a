package simulate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Result is what passes would decide.
type Result struct {
	From    time.Time      `json:"from"`
	To      time.Time      `json:"to"`
	Every   store.Duration `json:"every"`
	Down    []Outage       `json:"down"`
	Passes  int            `json:"passes"` // passes that found something to do
	Runs    int            `json:"runs"`
	NotRun  int            `json:"not_run"` // nominal times in gaps
	Jobs    []Facts        `json:"jobs"`
	Busiest []Minute       `json:"busiest"` // the minutes in which the most runs begin
	AtOnce  Peak           `json:"at_once"` // the most runs under way
	Days    []Day          `json:"days"`
	List    []RunFacts     `json:"run_list"` // the first ones
	Gaps    []GapFacts     `json:"gap_list"`
	More    bool           `json:"more"` // there are more runs or gaps than are listed
	Unheard []string       `json:"hooks_without_a_job,omitempty"`
}

// Facts sums up what happens with a job.
type Facts struct {
	Job       string         `json:"job"`
	Runs      int            `json:"runs"`
	Ended     map[string]int `json:"ended,omitempty"`   // runs that did not succeed, by state
	NotRun    map[string]int `json:"not_run,omitempty"` // nominal times in gaps, by reason
	Waited    map[string]int `json:"waited,omitempty"`  // runs that had to wait, by what they waited for
	Gaps      []Why          `json:"gaps,omitempty"`    // the same times by causes
	Wait      store.Duration `json:"longest_wait"`      // for an earlier run, the group or a pause
	Late      store.Duration `json:"most_late"`         // from the nominal time to the beginning
	First     time.Time      `json:"first,omitzero"`    // the first run begins
	Last      time.Time      `json:"last,omitzero"`
	Open      int            `json:"open,omitempty"` // runs that have not ended at the end
	Parked    string         `json:"parked,omitempty"`
	Paused    bool           `json:"paused,omitempty"`   // at the end, itself or one of its schedules
	Disabled  bool           `json:"disabled,omitempty"` // at the end
	Removed   time.Time      `json:"removed,omitzero"`   // by remove_when_done
	OnStartup bool           `json:"on_startup,omitempty"`
	Took
}

// Why sums up the nominal times that do not run for one reason and one cause.
type Why struct {
	Reason  string    `json:"reason"`
	Because string    `json:"because"`
	Times   int       `json:"times"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

type facts struct {
	Facts
	gaps   map[gapKey]*gap // the last ones
	starts []moment        // of all runs, if the simulation is compared with another one
}

// Minute is a minute in which runs begin.
type Minute struct {
	At   time.Time `json:"at"`
	Runs int       `json:"runs"`
}

// Peak is the first instant with the most runs under way.
type Peak struct {
	Runs int       `json:"runs"`
	At   time.Time `json:"at,omitzero"`
}

// Day counts the runs that begin on a day.
type Day struct {
	Day  string `json:"day"`
	Runs int    `json:"runs"`
}

// RunFacts describes a run.
type RunFacts struct {
	Job      string    `json:"job"`
	For      time.Time `json:"scheduled_for,omitzero"`
	Because  string    `json:"because,omitempty"` // why the run was made, if it is not for a nominal time
	Started  time.Time `json:"started_at,omitzero"`
	Finished time.Time `json:"finished_at,omitzero"`
	State    string    `json:"state"`
	Waited   string    `json:"waited_for,omitempty"` // the last thing that held it
	Attempts int       `json:"attempts"`
}

// GapFacts describes nominal times of a rule that do not run.
type GapFacts struct {
	Job     string    `json:"job"`
	First   time.Time `json:"first"` // the first and the last of them
	Last    time.Time `json:"last"`
	Times   int       `json:"times"`
	Reason  string    `json:"reason"`
	Because string    `json:"because"`
	Rule    string    `json:"rule"`
}

type gapKey struct {
	schedule int64
	reason   string
}

type gap struct {
	through time.Time
	facts   GapFacts
	listed  int // place in the list, from 1 on
}

// collector sums up while the clock advances.
type collector struct {
	l       *ledger
	result  *Result
	minutes map[int64]int
	days    map[string]int
	working int
	rules   map[string]*rules.Rule
	compare bool
}

func newCollector(l *ledger) *collector {
	o := l.o
	return &collector{l: l, minutes: map[int64]int{}, days: map[string]int{}, rules: map[string]*rules.Rule{}, compare: o.starts,
		result: &Result{From: o.From, To: o.To, Every: store.Duration(o.Every), Down: o.Down, Jobs: []Facts{}, Busiest: []Minute{}, Days: []Day{}, List: []RunFacts{}, Gaps: []GapFacts{}}}
}

// busy counts the runs under way.
func (c *collector) busy(by int) {
	if c.working += by; c.working > c.result.AtOnce.Runs {
		c.result.AtOnce = Peak{c.working, c.l.now}
	}
}

// started counts a run that begins for the first time.
func (c *collector) started(x *run) {
	f := x.of.facts
	f.Runs++
	c.result.Runs++
	c.minutes[c.l.now.Unix()/60]++
	c.days[c.l.now.In(c.l.o.Zone).Format(time.DateOnly)]++
	if f.First.IsZero() {
		f.First = c.l.now
	}
	f.Last = c.l.now
	if !x.ScheduledFor.IsZero() {
		f.Late = max(f.Late, store.Duration(c.l.now.Sub(x.ScheduledFor)))
	}
	if c.compare {
		m := moment{started: c.l.now.UnixMicro()}
		if !x.ScheduledFor.IsZero() {
			m.nominal = x.ScheduledFor.UnixMicro()
		}
		f.starts = append(f.starts, m)
	}
	if x.waited != "" {
		if f.Waited == nil {
			f.Waited = map[string]int{}
		}
		f.Waited[x.waited]++
		f.Wait = max(f.Wait, store.Duration(c.l.now.Sub(x.ReadyAt)))
	}
}

// run adds a run that has ended, or that is open when the simulation ends.
func (c *collector) run(x *run) {
	f := x.of.facts
	switch {
	case !x.Ended():
		f.Open++
	case x.State != store.Succeeded:
		if f.Ended == nil {
			f.Ended = map[string]int{}
		}
		f.Ended[x.State]++
	}
	if c.l.o.Run != nil {
		c.l.o.Run(x.Run)
	}
	if len(c.result.List) >= c.l.o.Keep {
		c.result.More = true
		return
	}
	r := RunFacts{Job: x.of.job.FullName(), For: x.ScheduledFor, Started: x.StartedAt, Finished: x.FinishedAt, State: x.State, Waited: x.waited, Attempts: x.Attempts}
	if x.ScheduledFor.IsZero() {
		r.Because = x.because()
	}
	c.result.List = append(c.result.List, r)
}

// because says why a run was made, if the run is not for a nominal time.
func (x *run) because() string {
	event, _, _ := strings.Cut(x.Event(), ":")
	switch {
	case x.Predecessor() != "" || x.Meeting() != "":
		return "after " + store.AfterText(x.of.job.After)
	case event != "":
		return "hook " + event
	}
	return "requested"
}

// gap adds a gap, and joins it with the gap before if they touch.
func (c *collector) gap(e *entry, g *store.Gap, d *store.Decision) {
	if c.l.o.Gap != nil {
		c.l.o.Gap(*g)
	}
	first, last, n := c.times(e, g, d)
	if n == 0 {
		return
	}
	f := e.facts
	if f.NotRun == nil {
		f.NotRun = map[string]int{}
	}
	f.NotRun[g.Reason] += n
	c.result.NotRun += n
	because := c.because(g, first, last)
	f.why(Why{g.Reason, because, n, first, last})
	key := gapKey{g.ScheduleID, g.Reason}
	if before := f.gaps[key]; before != nil && before.through.Equal(g.From) && before.facts.Rule == g.Rule && before.facts.Because == because {
		before.through, before.facts.Last, before.facts.Times = g.Through, last, before.facts.Times+n
		if before.listed > 0 {
			c.result.Gaps[before.listed-1] = before.facts
		}
		return
	}
	now := &gap{through: g.Through, facts: GapFacts{Job: e.job.FullName(), First: first, Last: last, Times: n, Reason: g.Reason, Because: because, Rule: g.Rule}}
	if f.gaps == nil {
		f.gaps = map[gapKey]*gap{}
	}
	if f.gaps[key] = now; len(c.result.Gaps) >= c.l.o.Keep {
		c.result.More = true
		return
	}
	c.result.Gaps = append(c.result.Gaps, now.facts)
	now.listed = len(c.result.Gaps)
}

// why adds nominal times to the times with the same cause.
func (f *facts) why(more Why) {
	i := slices.IndexFunc(f.Gaps, func(o Why) bool { return o.Reason == more.Reason && o.Because == more.Because })
	if i < 0 {
		f.Gaps = append(f.Gaps, more)
		return
	}
	f.Gaps[i].Times += more.Times
	if more.Last.After(f.Gaps[i].Last) {
		f.Gaps[i].Last = more.Last
	}
}

// times finds the nominal times of a gap: those that have no run, and that no earlier gap of the decision has, where two
// rules give one time.
func (c *collector) times(e *entry, g *store.Gap, d *store.Decision) (first, last time.Time, n int) {
	r := c.rule(e, g, d)
	if r == nil {
		return first, last, 0
	}
	counted := func(t time.Time) bool {
		for i := range d.Gaps {
			o := &d.Gaps[i]
			if o == g {
				return false
			}
			if !t.After(o.From) || t.After(o.Through) {
				continue
			}
			if other := c.rule(e, o, d); other != nil {
				if same, err := other.Next(t.Add(-instant)); err == nil && same.Equal(t) {
					return true
				}
			}
		}
		return false
	}
	t, err := r.Next(g.From)
	for ; err == nil && !t.IsZero() && !t.After(g.Through); t, err = r.Next(t) {
		if counted(t) || slices.ContainsFunc(d.Made, func(m store.Run) bool { return m.ScheduledFor.Equal(t) }) {
			continue
		}
		if n++; first.IsZero() {
			first = t
		}
		last = t
	}
	return first, last, n
}

// rule returns the rule of a gap; nil: it cannot be read.
func (c *collector) rule(e *entry, g *store.Gap, d *store.Decision) *rules.Rule {
	if r := c.rules[g.Rule]; r != nil {
		return r
	}
	ends := ""
	for _, planned := range slices.Concat(e.rules, d.Rules) {
		if planned.ScheduleID == g.ScheduleID && planned.Text == g.Rule {
			ends = planned.Ends
		}
	}
	r, err := rules.Parse(g.Rule, rules.Defaults{Ends: ends})
	if err != nil {
		return nil
	}
	c.rules[g.Rule] = r
	return r
}

// The causes of gaps, in addition to the reason of the gap.
const (
	BecauseDown    = "down"                          // no pass came, because of an outage
	BecauseFiner   = "finer than the passes"         // several times came between two passes, and the policy missed does not let all of them run
	BecauseLate    = "too late by the policy"        // missed_within, or missed_grace
	BecauseOverlap = "an earlier run was active"     // the overlap policy
	BecausePaused  = "paused"                        //
	BecauseOff     = "disabled"                      //
	BecauseLimit   = "max_runs was reached"          //
	BecauseEdited  = "before the definition changed" //
	BecauseSkipped = "skipped by skip-next"          //
)

// because says why the times of a gap do not run.
func (c *collector) because(g *store.Gap, first, last time.Time) string {
	switch g.Reason {
	case store.Overlap:
		return BecauseOverlap
	case store.Paused:
		return BecausePaused
	case store.Disabled:
		return BecauseOff
	case store.OverLimit:
		return BecauseLimit
	case store.Edited:
		return BecauseEdited
	case store.Skipped:
		return BecauseSkipped
	}
	for _, d := range c.l.o.Down {
		if !last.Before(d.From.Add(-c.l.o.Every)) && first.Before(d.To) {
			return BecauseDown
		}
	}
	if c.l.now.Sub(last) < c.l.o.Every {
		return BecauseFiner
	}
	return BecauseLate
}

// unheard notes a hook that cannot run.
func (c *collector) unheard(e *store.Event) {
	if name := e.HookName(); !slices.Contains(c.result.Unheard, name) {
		c.result.Unheard = append(c.result.Unheard, name)
	}
}

const busiest = 10 // minutes that are listed

// close sums up at the end.
func (c *collector) close(l *ledger) {
	l.now = l.o.To
	for _, e := range l.list {
		for _, x := range e.open {
			c.run(x)
		}
	}
	r := c.result
	for _, e := range l.list {
		f := e.facts.Facts
		f.Job, f.Took, f.OnStartup, f.Disabled = e.job.FullName(), e.job.Took, e.job.OnStartup, e.job.Disabled
		f.Parked, f.Paused = cmp.Or(f.Parked, e.plan.Parked), l.isPaused(e) // a job that stays parked needs no decision
		r.Jobs = append(r.Jobs, f)
	}
	slices.SortFunc(r.Jobs, func(x, y Facts) int { return cmp.Compare(x.Job, y.Job) })
	slices.SortStableFunc(r.List, func(x, y RunFacts) int { return cmp.Or(x.Started.Compare(y.Started), cmp.Compare(x.Job, y.Job)) })
	slices.SortStableFunc(r.Gaps, func(x, y GapFacts) int { return cmp.Or(x.First.Compare(y.First), cmp.Compare(x.Job, y.Job)) })
	for at, n := range c.minutes {
		r.Busiest = append(r.Busiest, Minute{time.Unix(at*60, 0).UTC(), n})
	}
	slices.SortFunc(r.Busiest, func(x, y Minute) int { return cmp.Or(cmp.Compare(y.Runs, x.Runs), x.At.Compare(y.At)) })
	r.Busiest = r.Busiest[:min(len(r.Busiest), busiest)]
	for _, day := range slices.Sorted(maps.Keys(c.days)) {
		r.Days = append(r.Days, Day{day, c.days[day]})
	}
	slices.Sort(r.Unheard)
}
