package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job that stays due, because its group is missing, is looked at again ever more seldom, although each pass decides for it.
// The other jobs do not wait for that.
func TestAlarmBesideAJobThatStaysDue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk, b := waking(t, d)
		stuck, other := ticktest.Hourly("stuck"), store.Job{Name: "other", Own: &store.Schedule{Rule: "25 * * * *"}, Steps: []store.Step{ticktest.Nop("")}}
		stuck.Group = "g"
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 1}}, Jobs: []store.Job{stuck, other}})
		d.Clock.Set(ticktest.Morning(8, 30))
		mustRun(t, tk)
		d.Exec(t, "DELETE FROM "+d.Table("groups"))
		alarms, started := 0, 0
		for at := ticktest.Morning(9, 0); at.Before(ticktest.Morning(13, 0)) && alarms < 100; alarms++ {
			d.Clock.Set(at)
			r := mustRun(t, tk)
			if started += r.Started; r.Started > 0 && at.Minute() != 25 {
				t.Errorf("the other job runs at %v", at)
			}
			if r.ParkedJobs != 1 || r.WakeAt.IsZero() {
				t.Fatalf("at %v: %d jobs are parked, the alarm is for %v", at, r.ParkedJobs, r.WakeAt)
			}
			b.take(d.Clock.Now())
			at = later(r.WakeAt, d.Clock.Now().Add(time.Second))
		}
		if started != 4 || alarms > 30 {
			t.Errorf("%d alarms; the other job ran %d times", alarms, started)
		}
	})
}

// A job whose plan another session has locked stays due. Others that are due sooner than the next look do not wait for it.
func TestAlarmBesideAJobThatIsLocked(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		tk, _ := waking(t, d)
		often := ticktest.Hourly("often")
		often.Own = &store.Schedule{Rule: "every 20m"}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("locked"), often}})
		mustRun(t, tk)
		tx, err := d.SQL.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // nothing was written
		if _, err := tx.Exec("SELECT job_id FROM " + d.Table("plans") + " WHERE job_id = (SELECT id FROM " + d.Table("jobs") + " WHERE name = 'locked') FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		for _, at := range []time.Time{ticktest.Morning(9, 0), ticktest.Morning(10, 10)} {
			d.Clock.Set(at)
			_, _ = tk.Run(t.Context()) // the error says who holds the lock
		}
		d.Clock.Set(ticktest.Morning(10, 11))
		if r, err := tk.Run(t.Context()); r.LockedJobs != 1 || !r.WakeAt.Equal(ticktest.Morning(10, 20)) {
			t.Errorf("%d locked, %v; a job is due at 10:20, and the alarm is for %v", r.LockedJobs, err, r.WakeAt)
		}
	})
}
