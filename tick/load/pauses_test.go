package load

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// However many newer pauses of other jobs are in force, a job, its runs and a schedule show the pause that holds them, and a freeze
// is seen.
func TestPausesBehindManyOthers(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			const others, first = 10_001, 1_000_000
			d := storetest.Open(t, e, store.Options{})
			w, exec := words[d.Engine], fill(t, d)
			ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "idle", Rule: "every 1h"}}, Jobs: []store.Job{ticktest.Hourly("held"),
				{Name: "by schedule", Schedules: []string{"idle"}, Steps: []store.Step{ticktest.Nop("")}}}})
			ticktest.Run(t, d)
			all := store.Subject{Scope: store.ScopeAll}
			for _, on := range []store.Subject{all, {Scope: store.ScopeJob, Name: "held"}, {Scope: store.ScopeSchedule, Name: "idle"}} {
				ticktest.Pause(t, d, on, time.Time{})
			}
			ticktest.Resume(t, d, all, false)
			ticktest.Request(t, d, "held")
			exec(`INSERT INTO dbjobs.pauses (scope, subject_id, paused_by, since) SELECT 'job', %d + i, 'ada', %s FROM NUMBERS`, others, first, w.at("0"))
			for _, name := range []string{"held", "by schedule"} {
				v, err := d.Job(t.Context(), name)
				if seen := d.Int(t, "SELECT count(*) FROM "+d.Table("v_jobs")+" WHERE state = 'paused' AND name = '"+name+"'"); err != nil || v.State != store.JobPaused || seen != 1 {
					t.Errorf("%s: %v: the state is %s; paused in v_jobs: %d", name, err, v.State, seen)
				}
			}
			list, err := d.ScheduleStatuses(t.Context(), "idle")
			if err != nil || list[0].State != store.SchedulePaused {
				t.Errorf("%v: %+v", err, list)
			}
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: "held"})
			if err != nil || len(runs) != 1 || runs[0].HeldBy != store.HeldByPause {
				t.Errorf("%v: %+v", err, runs)
			}
			d.Exec(t, "UPDATE "+d.Table("pauses")+" SET resumed_at = NULL WHERE scope = 'all'")
			if p, err := d.Pauses(t.Context(), false, 1); err != nil || len(p) != 1 || p[0].Scope != store.ScopeAll {
				t.Errorf("%v: %+v", err, p)
			}
		})
	}
}
