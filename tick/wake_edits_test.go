package tick_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// fate is what the platform does with an alarm.
type fate struct {
	lost        bool
	late, again time.Duration // it rings late by this, and once more after that
}

// platform is a platform that loses, delays and doubles alarms.
type platform struct {
	rnd   *rand.Rand
	now   func() time.Time
	fates map[time.Time]fate // of each alarm, by its time
	rings []time.Time        // future rings, in their order
}

func (p *platform) Set(_ context.Context, at time.Time) (time.Time, error) {
	at = ceil(later(at, p.now()))
	if _, set := p.fates[at]; set {
		return at, nil
	}
	var f fate
	switch p.rnd.IntN(10) {
	case 0:
		f.lost = true
	case 1:
		f.late = time.Duration(p.rnd.IntN(900)) * time.Second
	case 2:
		f.again = time.Duration(1+p.rnd.IntN(60)) * time.Second
	}
	p.fates[at] = f
	if !f.lost {
		p.rings = append(p.rings, at.Add(f.late))
	}
	if f.again > 0 {
		p.rings = append(p.rings, at.Add(f.late+f.again))
	}
	slices.SortFunc(p.rings, time.Time.Compare)
	return at, nil
}

func ceil(t time.Time) time.Time {
	if down := t.Truncate(time.Second); down.Before(t) {
		return down.Add(time.Second)
	}
	return t
}

// restless is a set of jobs that somebody edits all the time, with alarms that are lost, late and doubled, and a safety
// trigger.
type restless struct {
	*testing.T
	rnd    *rand.Rand
	clock  *storetest.Clock
	store  *store.Store
	tick   *tick.Tick
	bells  *platform
	passes int
	last   time.Time            // when the last pass ended
	edited map[string]time.Time // when each job, or a row that it depends on, was edited
	db     *sql.DB
	ids    map[string]int64

	runs, tight, early, overdue int
}

const safety = time.Hour

func (r *restless) must(err error) {
	if err != nil {
		r.Helper()
		r.Fatal(err)
	}
}

// Execute checks the instant at which a run starts.
func (r *restless) Execute(_ context.Context, q executor.Request) (executor.Result, error) {
	due, now, job := q.Task.Run.ScheduledFor, r.clock.Now(), q.Task.Job.Name
	if due.IsZero() {
		return executor.Result{}, nil
	}
	r.runs++
	if now.Before(due) {
		r.early++
		r.Errorf("%s of %s starts at %s", due, job, now)
	}
	// The safety trigger limits the delay of every run. A pass that it starts may take a moment by this clock. An alarm
	// limits the delay of the runs that are due after the last pass before has seen the job as it is.
	most := later(due, r.edited[job]).Truncate(safety).Add(safety) // the job may have been paused, and the end of a pause is an edit
	if f, set := r.bells.fates[ceil(due)]; set && !f.lost && r.seen(job, due) {
		r.tight++
		most = ceil(due).Add(f.late)
	}
	if now.After(most.Add(10 * time.Second)) {
		r.overdue++
		r.Errorf("%s of %s starts at %s, at the latest it should at %s; it was edited at %s", due, job, now, most, r.edited[job])
	}
	return executor.Result{}, nil
}

// seen reports whether a pass has seen a job, as it is now, before a time was due. Such a pass has set an alarm.
func (r *restless) seen(job string, due time.Time) bool {
	return !r.edited[job].After(r.last) && r.last.Before(due)
}

// pass is a pass that somebody starts.
func (r *restless) pass(at time.Time) {
	r.clock.Set(later(at, r.clock.Now()))
	r.passes++
	_, err := r.tick.Run(context.Background())
	r.must(err)
	r.last = r.clock.Now()
	r.covered()
}

// until makes the passes that somebody starts, up to an instant.
func (r *restless) until(to time.Time) {
	for {
		next := r.last.Truncate(safety).Add(safety)
		if len(r.bells.rings) > 0 && r.bells.rings[0].Before(next) {
			next = r.bells.rings[0]
		}
		if next.After(to) {
			break
		}
		if len(r.bells.rings) > 0 && r.bells.rings[0].Equal(next) {
			r.bells.rings = r.bells.rings[1:]
		}
		r.pass(next)
	}
	r.clock.Set(later(to, r.clock.Now()))
}

// covered checks after each pass that the next time of each job has an alarm at that time or before. It gets the next
// times from the rules alone, without the plans. The platform may have lost the alarm.
func (r *restless) covered() {
	ctx, now := context.Background(), r.clock.Now()
	jobs, err := r.store.Jobs(ctx, store.JobFilter{})
	r.must(err)
	u, err := tick.Upcoming(ctx, r.store, jobs, now.Add(time.Second), now.Add(48*time.Hour), 1)
	r.must(err)
	if frozen, err := r.store.Pauses(ctx, false, 100); err != nil || len(u.Runs) == 0 || slices.ContainsFunc(frozen, func(p store.Pause) bool { return p.Scope == store.ScopeAll }) {
		r.must(err)
		return
	}
	next := u.Runs[0]
	for at := range r.bells.fates {
		if at.After(now) && !at.After(ceil(next.At)) {
			return
		}
	}
	r.Errorf("%s: no alarm is set for %s, when %s is due", now, next.At, next.Job)
}

var restlessRules = []string{"every 3m", "every 7m", "every 20m", "every 1h", "every 95m", "daily at 08:00", "5,35 * * * *", "daily at 03:17:29", "*/10 8-17 * * 1-5", "every 6h"}

func (r *restless) rule() string { return restlessRules[r.rnd.IntN(len(restlessRules))] }

func (r *restless) define(name string) store.Definitions {
	return store.Definitions{Jobs: []store.Job{{Name: name, Own: &store.Schedule{Rule: r.rule(), Zone: "UTC"}, Steps: []store.Step{ticktest.Call("")}}}}
}

// edit does something to a job. All edits except plain SQL set an alarm, as the commands do.
func (r *restless) edit() {
	ctx, who := context.Background(), store.Author{}
	now, name := r.clock.Now(), fmt.Sprintf("job%d", r.rnd.IntN(6))
	job := store.Subject{Scope: store.ScopeJob, Name: name}
	until := now.Add(time.Duration(1+r.rnd.IntN(180)) * time.Minute)
	r.edited[name] = later(now, r.edited[name]) // it may be the end of a pause, in the future
	all := func(at time.Time) {
		for name := range r.edited {
			r.edited[name] = later(at, r.edited[name])
		}
	}
	var err error
	switch r.rnd.IntN(12) {
	case 0, 1, 2:
		_, err = r.store.Apply(ctx, r.define(name), store.ApplyOptions{})
	case 3, 4: // by SQL
		rule := r.define(name).Jobs[0].Own.Rule
		_, err = r.db.Exec("UPDATE dbjobs_schedules SET rule = ? WHERE job_id = ?", rule, r.ids[name])
		r.must(err)
		return
	case 5:
		_, err = r.db.Exec("UPDATE dbjobs_jobs SET enabled = 1 - enabled WHERE id = ?", r.ids[name])
		r.must(err)
		return
	case 6:
		if _, err = r.store.Pause(ctx, job, until, who); err == nil {
			r.edited[name] = later(until, r.edited[name])
		}
	case 7:
		_, err = r.store.Resume(ctx, job, false, who)
	case 8:
		_, err = r.store.RunNow(ctx, name, store.Request{})
	case 9:
		_, err = r.store.RunNow(ctx, name, store.Request{At: until})
	case 10:
		_, err = r.store.Pause(ctx, store.Subject{Scope: store.ScopeAll}, now.Add(20*time.Minute), who)
		all(now.Add(20 * time.Minute))
	case 11:
		_, err = r.store.Resume(ctx, store.Subject{Scope: store.ScopeAll}, false, who)
		all(now)
	}
	if refused := new(store.FieldError); !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrNotFound) && !errors.As(err, &refused) {
		r.must(err)
	}
	probe, err := r.store.Probe(ctx, "test", tick.OwnQueue)
	r.must(err)
	if at := r.tick.RingAt(probe); !at.IsZero() {
		_, err = r.bells.Set(ctx, at)
		r.must(err)
	}
}

// Under random edits, by commands and by SQL, and with alarms that are lost, late and doubled, no run starts before its
// time, or later than its alarm or the safety trigger.
func TestAlarmsUnderRandomEdits(t *testing.T) {
	t.Parallel()
	edits, seed := prove.Cases(100, 10_000), uint64(1)
	d := storetest.Open(t, "sqlite", store.Options{})
	r := &restless{T: t, rnd: rand.New(rand.NewPCG(seed, 19)), clock: d.Clock, store: d.Store, db: d.SQL, edited: map[string]time.Time{}, ids: map[string]int64{}}
	r.bells = &platform{rnd: r.rnd, now: r.clock.Now, fates: map[time.Time]fate{}}
	r.tick = &tick.Tick{Store: r.store, Name: "test", Holder: "test", Version: "test", Now: r.clock.Now, Concurrency: 1, Executors: executor.Registry{"doing": r}, Alarm: r.bells,
		Sleep: func(_ context.Context, d time.Duration) { r.clock.Add(d) }}
	for i := range 6 {
		_, err := r.store.Apply(t.Context(), r.define(fmt.Sprintf("job%d", i)), store.ApplyOptions{})
		r.must(err)
	}
	jobs, err := r.store.Jobs(t.Context(), store.JobFilter{})
	r.must(err)
	for _, j := range jobs {
		r.ids[j.Name], r.edited[j.Name] = j.ID, r.clock.Now()
	}
	r.pass(r.clock.Now())
	for i := 0; i < edits && !t.Failed(); i++ {
		r.until(r.clock.Now().Add(time.Duration(r.rnd.IntN(1200)) * time.Second))
		r.edit()
	}
	t.Logf("seed %d: %d edits, %d passes, %d alarms; %d runs, %d of them bounded by their alarm; %d early, %d overdue", seed, edits, r.passes, len(r.bells.fates), r.runs, r.tight, r.early, r.overdue)
	if r.tight < edits/4 {
		t.Error("too few runs had an alarm")
	}
}
