// Package simulate says what passes would decide, under a virtual clock. It keeps in memory what a
// database would hold, and calls decide.Job and decide.Groups, the functions that also decide in a real
// pass. It writes nothing and waits for nothing.
//
// # What is the same as in a pass
//
// A pass comes at each multiple of Options.Every since the epoch, except in an outage. It decides for
// the jobs that need it, in the order of the needs of tick.pass, and takes the runs that are queued. A
// pass that executes runs decides again whenever one of them ends, for jobs that their runs wake. A
// worker decides nothing: the next pass decides. A pass without a need decides nothing, so the clock
// jumps to the next pass that has a need.
//
// # What is assumed
//
//   - Nobody edits a definition, pauses a job or requests a run.
//   - A run takes as long as Options.Outcome or Job.Took says, and succeeds unless Options.Outcome says
//     otherwise. Each attempt of a step takes this long, counted from its own beginning.
//   - There is always a place and a process for a queued run: it begins with the pass that queued it.
//   - No host starts, so on_startup makes no runs.
//   - The back-off of a retry has no random part. The jitter of a job never has a random part.
package simulate

import (
	"context"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// Job is a job as it is when a simulation begins.
type Job struct {
	store.Job
	Rules []store.Rule         // its schedules, as planned and as defined
	Plan  store.Plan           // zero: no pass has decided for it yet
	Open  []store.Run          // runs that are not settled
	Tried map[string]time.Time // by id of a run: when its attempt under way began, if the step was tried before
	Ends  []store.WaitingEnd   // ends of jobs that it runs after, which wait for the ends of the other such jobs
	// AsPlanned says that nothing has changed since the plan was made, so the job needs no decision before it is due.
	AsPlanned bool
	// Stale says that the job itself has changed since. Planned has what it was before, if that is known, and ChangedAt is
	// the instant of the change.
	Stale     bool
	Planned   store.PlannedPolicies
	ChangedAt time.Time
	Took      Took
	// AfterLost says that the row of a job that it runs after was deleted. A job that is not here for another reason, such as one
	// that is done, never runs.
	AfterLost bool
}

// Took says how long a run of a job takes.
type Took struct {
	Length store.Duration `json:"took"`
	Of     int            `json:"took_of"` // recent runs; 0: it is assumed
}

// Input is what a simulation begins with.
type Input struct {
	Jobs   []Job
	Groups []store.Group
	Pauses []store.Pause
}

// Outage is a time without passes: from From on, and before To.
type Outage struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Options say what is simulated.
type Options struct {
	From, To time.Time     // the clock goes from From to To
	Every    time.Duration // between two passes; 0: a minute
	Down     []Outage
	Zone     *time.Location // of the days that are counted; nil: UTC
	Keep     int            // how many runs and gaps the result lists, beside the sums of all jobs; 0: none
	// Outcome says how long an attempt takes, and whether its first step fails. Nil: an attempt takes as
	// long as Job.Took says, and succeeds.
	Outcome func(j *Job, r *store.Run) (took time.Duration, fails bool)
	// Run is called with each run, when the run has ended and was counted, or when the simulation ends. Gap is
	// called with each gap. Both may be nil.
	Run func(store.Run)
	Gap func(store.Gap)

	starts bool // the beginnings of all runs are kept, to compare them
}

// Run simulates. It returns only the error of the context.
func Run(ctx context.Context, in Input, o Options) (*Result, error) {
	l, err := walk(ctx, in, o)
	if err != nil {
		return nil, err
	}
	l.out.close(l)
	return l.out.result, nil
}

func walk(ctx context.Context, in Input, o Options) (*ledger, error) {
	if o.Every <= 0 {
		o.Every = time.Minute
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	l := newLedger(in, o)
	for n := 0; l.step(); n++ {
		if n%100 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return l, nil
}

const heartbeat = 30 * time.Second // the same as in a pass

// newLedger is the state at the beginning.
func newLedger(in Input, o Options) *ledger {
	l := &ledger{o: o, now: o.From, byID: map[int64]*entry{}, byName: map[string]*entry{}, runs: map[string]*run{}, pauses: slices.Clone(in.Pauses),
		groups: map[string]*group{}, users: map[string][]*entry{}, pass: &decide.Pass{Heartbeat: heartbeat}}
	l.out = newCollector(l)
	for _, g := range in.Groups {
		l.group(g.Name).max = g.MaxRunning
	}
	for i := range in.Jobs {
		l.enter(&in.Jobs[i])
	}
	for _, e := range l.list {
		l.follow(e)
		e.circle = l.circular(e)
		l.reopenEnds(e)
		for i := range e.job.Open {
			l.reopen(e, e.job.Open[i])
		}
		if next := e.plan.NextRun; !e.job.AsPlanned {
			e.plan.NextRun = time.Time{} // the first pass plans it
			l.change(e)
		} else if !next.IsZero() {
			l.due.push(next, "", e)
		}
	}
	return l
}
