package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Before a pass has seen an edit of a job with repeat_after, or that its pause was ended early, the lists have the next time
// that this pass then finds.
func TestRepeatAfterIsForeseen(t *testing.T) {
	const again = 10 * time.Minute
	job := func(again time.Duration) store.Definitions {
		return store.Definitions{Jobs: []store.Job{{Name: "again", RepeatAfter: store.Duration(again), Steps: []store.Step{ticktest.Nop("")}}}}
	}
	on := store.Subject{Scope: store.ScopeJob, Name: "again"}
	for name, c := range map[string]struct {
		edit    time.Duration // the new repeat_after; 0: it is paused instead
		resumed time.Duration // after the last run; the pause would last three minutes more
		missed  bool
		next    time.Duration // from the last change; 0: at once
	}{
		"longer":                              {edit: 30 * time.Minute, next: 29 * time.Minute},
		"shorter, and due":                    {edit: 30 * time.Second, next: 30 * time.Second},
		"resumed before its time":             {resumed: 5 * time.Minute, next: 5 * time.Minute},
		"resumed after its time":              {resumed: 12 * time.Minute, next: again},
		"resumed after its time, with missed": {resumed: 12 * time.Minute, missed: true},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, job(again))
				ticktest.Run(t, d)
				d.Clock.Add(time.Minute)
				if c.edit > 0 {
					ticktest.Apply(t, d, job(c.edit))
				} else {
					ticktest.Pause(t, d, on, d.Clock.Now().Add(c.resumed+2*time.Minute))
					for range c.resumed/time.Minute - 1 {
						ticktest.Run(t, d)
						d.Clock.Add(time.Minute)
					}
					ticktest.Resume(t, d, on, c.missed)
				}
				now, day := d.Clock.Now(), 24*time.Hour
				list, err := d.Jobs(t.Context(), store.JobFilter{})
				if err != nil || len(list) != 1 {
					t.Fatal(err, list)
				}
				u, err := tick.Upcoming(t.Context(), d.Store, list, now, now.Add(day), 10)
				if err != nil || len(u.Runs) != 1 {
					t.Fatalf("%v: %+v", err, u)
				}
				want := now.Add(c.next)
				if !u.Runs[0].At.Equal(want) {
					t.Errorf("listed at %s, want %s", u.Runs[0].At, want)
				}
				by, err := tick.UpcomingByJob(t.Context(), d.Store, list, now, now.Add(day), 10)
				if err != nil || len(by) != 1 || len(by[0].Times) != 1 || !by[0].Times[0].Equal(want) {
					t.Errorf("by job: %v: %+v", err, by)
				}
				if f, err := tick.Forecast(t.Context(), d.Store, &list[0], 3); c.next > 0 && (err != nil || len(f.Next) != 1 || !f.Next[0].Equal(want)) {
					t.Errorf("forecast: %v: %+v", err, f)
				}
				if err := tick.NextOutsidePauses(t.Context(), d.Store, list); err != nil || c.edit == 0 && c.next > 0 && !list[0].NextRun.Equal(want) {
					t.Errorf("job list: %v: %s", err, list[0].NextRun)
				}
				r := ticktest.Run(t, d)
				if is, err := d.Job(t.Context(), "again"); err != nil || c.next > 0 && !is.NextRun.Equal(want) || (c.next == 0) != (r.Made == 1) {
					t.Errorf("%v: the pass has made %d runs, and says %s, not %s", err, r.Made, is.NextRun, want)
				}
			})
		})
	}
}

// The next run of a paused job, and of one that is due while no pass comes, is where passes then execute it.
func TestRepeatAfterIsForeseenWithoutAPass(t *testing.T) {
	const again = 10 * time.Minute
	on := store.Subject{Scope: store.ScopeJob, Name: "again"}
	for name, c := range map[string]struct {
		gap    time.Duration // until then after the first run, an earlier pause takes a time; 0: there is none
		silent time.Duration // then no pass comes for this time
		pause  time.Duration // then it is paused for this time; 0: it is not
		next   time.Duration // from then on
	}{
		"in the pause":                {silent: time.Minute, pause: 15 * time.Minute, next: 25 * time.Minute},
		"after the pause":             {silent: time.Minute, pause: 5 * time.Minute, next: 9 * time.Minute},
		"at the end of the pause":     {silent: time.Minute, pause: 9 * time.Minute, next: 9 * time.Minute},
		"after an earlier pause":      {gap: 12 * time.Minute, silent: time.Minute, pause: 5 * time.Minute, next: 9 * time.Minute},
		"due before the pause":        {silent: 12 * time.Minute, pause: 5 * time.Minute, next: 5 * time.Minute},
		"due":                         {silent: 3 * time.Hour},
		"due after an earlier pause":  {gap: 12 * time.Minute, silent: 11 * time.Minute},
		"beyond the end of its times": {silent: time.Minute, pause: 45 * time.Minute, next: -1},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				began := d.Clock.Now()
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "again", RepeatAfter: store.Duration(again),
					NotAfter: began.Add(50*time.Minute + c.silent), Steps: []store.Step{ticktest.Nop("")}}}})
				ticktest.Run(t, d)
				if c.gap > 0 {
					ticktest.Pause(t, d, on, began.Add(c.gap))
					for range c.gap / time.Minute {
						d.Clock.Add(time.Minute)
						ticktest.Run(t, d)
					}
				}
				d.Clock.Add(c.silent)
				now := d.Clock.Now()
				if c.pause > 0 {
					ticktest.Pause(t, d, on, now.Add(c.pause))
				}
				list, err := d.Jobs(t.Context(), store.JobFilter{})
				if err != nil || len(list) != 1 {
					t.Fatal(err, list)
				}
				u, err := tick.Upcoming(t.Context(), d.Store, list, now, now.Add(24*time.Hour), 10)
				if c.next < 0 {
					if err != nil || len(u.Runs) != 0 {
						t.Errorf("%v: %+v, want no time after not_after", err, u)
					}
					return
				}
				want := now.Add(c.next)
				if err != nil || len(u.Runs) != 1 || !u.Runs[0].At.Equal(want) {
					t.Fatalf("%v: %+v, want one time, %s", err, u, want)
				}
				if by, err := tick.UpcomingByJob(t.Context(), d.Store, list, now, now.Add(24*time.Hour), 10); err != nil || len(by) != 1 || len(by[0].Times) != 1 || !by[0].Times[0].Equal(want) {
					t.Errorf("by job: %v: %+v", err, by)
				}
				if f, err := tick.Forecast(t.Context(), d.Store, &list[0], 3); c.next > 0 && (err != nil || len(f.Next) != 1 || !f.Next[0].Equal(want)) {
					t.Errorf("forecast: %v: %+v", err, f)
				}
				for ; d.Clock.Now().Before(want); d.Clock.Add(time.Minute) {
					if r := ticktest.Run(t, d); r.Started != 0 {
						t.Fatalf("it has run at %s already, not at %s", d.Clock.Now(), want)
					}
				}
				if r := ticktest.Run(t, d); r.Started != 1 {
					t.Errorf("it has not run at %s", want)
				}
			})
		})
	}
}

// What a preview says of the next time of a job that begins again, or is due, or has not begun, is what the next pass then finds,
// and what is listed until then.
func TestRepeatAfterIsPreviewed(t *testing.T) {
	const again = 10 * time.Minute
	for name, c := range map[string]struct {
		first, between, to func(*store.Job) // the edits; a pass comes after the first one, and after the second one
		wait               time.Duration    // then no pass comes for this time
	}{
		"enabled after its time":  {between: func(j *store.Job) { j.Disabled = true }, wait: 3 * time.Hour},
		"enabled before its time": {between: func(j *store.Job) { j.Disabled = true }, wait: 4 * time.Minute},
		"max_runs is raised": {first: func(j *store.Job) { j.MaxRuns = 1 }, wait: 3 * time.Hour,
			to: func(j *store.Job) { j.MaxRuns = 2 }},
		"before not_before": {first: func(j *store.Job) { j.NotBefore = j.NotBefore.Add(24 * time.Hour) }, wait: time.Hour,
			to: func(j *store.Job) { j.RepeatAfter *= 3 }},
		"longer when it is due": {wait: 15 * time.Minute, to: func(j *store.Job) { j.RepeatAfter *= 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				j := store.Job{Name: "again", RepeatAfter: store.Duration(again), NotBefore: d.Clock.Now(), Steps: []store.Step{ticktest.Nop("")}}
				edit := func(change func(*store.Job)) {
					if change != nil {
						change(&j)
					}
					ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
				}
				status := func() store.JobStatus {
					t.Helper()
					v, err := d.Job(t.Context(), "again")
					if err != nil {
						t.Fatal(err)
					}
					return v
				}
				edit(c.first)
				ticktest.Run(t, d)
				if c.between != nil {
					edit(c.between)
					ticktest.Run(t, d)
					j.Disabled = false
				}
				d.Clock.Add(c.wait)
				if c.to != nil {
					c.to(&j)
				}
				now, is := d.Clock.Now(), status()
				will := is
				will.RepeatAfter, will.MaxRuns, will.Disabled = j.RepeatAfter, j.MaxRuns, j.Disabled
				said := decide.NextRepeat(&will, &is.Job, now)
				edit(nil)
				u, err := tick.Upcoming(t.Context(), d.Store, []store.JobStatus{status()}, now, now.Add(48*time.Hour), 10)
				if err != nil || len(u.Runs) != 1 || !u.Runs[0].At.Equal(said) {
					t.Errorf("%v: the preview said %s, and then %+v is listed", err, said, u.Runs)
				}
				ticktest.Run(t, d)
				if v := status(); !v.NextRun.Equal(said) {
					t.Errorf("the preview said %s, and the next pass says %s", said, v.NextRun)
				}
			})
		})
	}
}
