package simulate

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// Where many runs wait for a job, the end of a run reads a few of them only, and decides as from all of them.
func TestEndsOfRunsReadFewOfACrowd(t *testing.T) {
	const crowd = 100
	for _, overlap := range []string{store.OverlapWait, store.OverlapWaitAll, store.OverlapSkip, store.OverlapReplace, store.OverlapAllow} {
		for name, times := range map[string]int{"requests": 0, "requests, then times": 40, "times": crowd} {
			t.Run(overlap+", "+name, func(t *testing.T) {
				l, e := crowded(t, overlap, crowd, times)
				ended, least := 0, crowd/2
				if overlap == store.OverlapReplace { // the first nominal time replaces the others
					least = max(0, least-times)
				}
				for l.step() {
					for _, x := range e.open {
						if x.State != store.Running {
							continue
						}
						before := x.Run
						x.State, x.FinishedAt = store.Succeeded, l.now
						if len(e.open) > crowd/2 {
							fewer(t, l, e)
						}
						x.Run = before
						ended++
						break
					}
				}
				if ended < least {
					t.Errorf("only %d ends were looked at", ended)
				}
				l.out.close(l)
				if n := l.out.result.Jobs[0].Runs; n < least {
					t.Errorf("%d runs began", n)
				}
			})
		}
	}
}

// A run that is tried until the next nominal time ends if that time is among many that wait.
func TestRunTriedUntilTheNextTimeFindsItInACrowd(t *testing.T) {
	l, e := crowded(t, store.OverlapWaitAll, 100, 100)
	untilNext, tried := store.Attempts(0), 0
	e.job.Retry.Attempts = &untilNext
	for l.step() {
		for _, x := range e.open {
			if x.State != store.Running || !e.open[len(e.open)-1].ScheduledFor.After(x.StartedAt) {
				continue
			}
			before := x.Run
			x.State, x.ReadyAt = store.Waiting, l.now
			some, all := l.snapshot(e, nil, store.RunWakes), l.snapshot(e, nil, store.JobChanged)
			got, want := decide.Job(l.now, &some, l.pass), decide.Job(l.now, &all, l.pass)
			if got.Plan.LastState != store.Failed || !reflect.DeepEqual(got, want) {
				t.Fatalf("%d of %d open runs:\n%+v\nwant\n%+v", len(some.Runs), len(all.Runs), got, want)
			}
			x.Run = before
			tried++
		}
	}
	if tried == 0 {
		t.Error("no run began before the newest time")
	}
}

// fewer compares the decision from what is read if a run wakes the job with the decision from all runs.
func fewer(t *testing.T, l *ledger, e *entry) {
	t.Helper()
	some, all := l.snapshot(e, nil, store.RunWakes), l.snapshot(e, nil, store.JobChanged)
	resting := 0
	for i := range some.Runs {
		if e.job.Rest(&some.Runs[i]) != store.Stirs {
			resting++
		}
	}
	if resting > e.job.RestingRead()+1 || len(all.Runs) != len(e.open) {
		t.Fatalf("of %d open runs, %d that rest are read, and %d where all are asked for", len(e.open), resting, len(all.Runs))
	}
	got, want := decide.Job(l.now, &some, l.pass), decide.Job(l.now, &all, l.pass)
	for i := range min(len(got.Retention), len(want.Retention)) {
		if kept := &got.Retention[i]; kept.Below <= want.Retention[i].Below { // it keeps more where it does not know how many are open
			kept.Below = want.Retention[i].Below
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("of %d open runs, %d are read:\n%+v\nwant\n%+v", len(all.Runs), len(some.Runs), got, want)
	}
}

// crowded is a ledger with one job that has nominal times, and for which many runs wait: requests, and then nominal times.
func crowded(t *testing.T, overlap string, crowd, times int) (*ledger, *entry) {
	t.Helper()
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	j := store.Job{Name: "job", Own: &store.Schedule{Rule: "every 5m"}, Overlap: overlap, Steps: []store.Step{{Name: "step 1", Executor: "sql"}}}
	if overlap == store.OverlapAllow {
		j.MaxRunning = 3
	}
	in, err := Of(store.Definitions{Jobs: []store.Job{j}}, Shared{}, start)
	if err != nil {
		t.Fatal(err)
	}
	in.SetTook(nil, 0, 2*time.Minute)
	for i := range crowd {
		r := store.Run{ID: fmt.Sprintf("%04d", i), JobID: in.Jobs[0].ID, Number: int64(i) + 1, Occurrence: fmt.Sprintf("now:%04d", i),
			State: store.Waiting, HeldBy: store.HeldByPredecessor, Queue: "tick", ReadyAt: start, CreatedAt: start}
		if i >= crowd-times {
			r.ScheduledFor = start.Add(time.Duration(i-crowd) * 5 * time.Minute)
			r.Occurrence = store.OccurrenceAt(r.ScheduledFor)
		}
		in.Jobs[0].Open = append(in.Jobs[0].Open, r)
	}
	in.Jobs[0].Plan.RunsMade = int64(crowd)
	l := newLedger(in, Options{From: start, To: start.Add(8 * time.Hour), Every: time.Minute, Zone: time.UTC})
	return l, l.list[0]
}

// A decision for one job of a group is shown a few of the runs that wait there, however many jobs the group has: so that a
// simulation of many does not read all of them again for each.
func TestDecisionsReadFewOfAGroup(t *testing.T) {
	const members, most = 2000, 3
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	d := store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: most}}}
	for i := range members {
		d.Jobs = append(d.Jobs, store.Job{Name: fmt.Sprintf("job-%04d", i), Own: &store.Schedule{Rule: "daily at 01:00"}, Group: "g", Priority: i % 5,
			Steps: []store.Step{{Name: "step 1", Executor: "sql"}}})
	}
	in, err := Of(d, Shared{}, start)
	if err != nil {
		t.Fatal(err)
	}
	in.SetTook(nil, 0, time.Minute)
	l := newLedger(in, Options{From: start, To: start.Add(24 * time.Hour), Every: time.Minute, Zone: time.UTC})
	crowds := 0
	for n := 0; l.step(); n++ {
		if n%100 != 0 {
			continue
		}
		e := l.list[n%members]
		loads := map[string]*store.GroupLoad{}
		l.snapshot(e, loads, store.RunWakes)
		l.readGroups([]*entry{e}, loads)
		active, waiting := 0, 0
		for _, x := range l.runs {
			if x.UnderWay() {
				active++
			} else if x.HeldBy == store.HeldByGroup {
				waiting++
			}
		}
		if waiting > members/2 {
			crowds++
		}
		if g := loads["g"]; g.Active != active || len(g.Waiting) < min(waiting, most) || len(g.Waiting) > most+1 {
			t.Fatalf("%d runs are under way, and %d of %d waiting ones are shown; %d are under way", g.Active, len(g.Waiting), waiting, active)
		}
	}
	if l.out.close(l); crowds == 0 || l.out.result.Runs != members {
		t.Errorf("%d runs, want %d; %d times there was a crowd", l.out.result.Runs, members, crowds)
	}
}
