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
		ticktest.Pass(t, tk)
		d.Exec(t, "DELETE FROM "+d.Table("groups"))
		alarms, started := 0, 0
		for at := ticktest.Morning(9, 0); at.Before(ticktest.Morning(13, 0)) && alarms < 100; alarms++ {
			d.Clock.Set(at)
			r := ticktest.Pass(t, tk)
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

// A job whose plan another session has locked stays due. Others that are due sooner than the next look do not wait for it,
// nor does one that is locked since a shorter time.
func TestAlarmBesideAJobThatIsLocked(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		tk, _ := waking(t, d)
		often := ticktest.Hourly("often")
		often.Own = &store.Schedule{Rule: "every 20m"}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("locked"), often}})
		ticktest.Pass(t, tk)
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
		if _, err := tx.Exec("SELECT job_id FROM " + d.Table("plans") + " FOR UPDATE"); err != nil { // the other one, too
			t.Fatal(err)
		}
		d.Clock.Set(ticktest.Morning(10, 21))
		if r, err := tk.Run(t.Context()); !r.WakeAt.Equal(ticktest.Morning(10, 22)) {
			t.Errorf("%v; a job is locked since a minute, beside another one since an hour, and is looked at again at %v", err, r.WakeAt)
		}
	})
}

// What this host has left is looked at again by how long it has been due itself, and not by how long runs have waited in the
// queue of a worker, or a job has stayed due.
func TestAlarmBesideTheBacklogOfAWorker(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk, _ := waking(t, d)
		once := func(name, queue, at string) store.Job {
			return store.Job{Name: name, Queue: queue, Own: &store.Schedule{Rule: "daily at " + at}, Steps: []store.Step{ticktest.Nop("")}}
		}
		stuck := once("stuck", "", "15:10")
		stuck.Group = "g"
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 1}},
			Jobs: []store.Job{once("of a worker", "elsewhere", "08:30"), once("own", "", "15:00"), stuck, once("own later", "", "20:00")}})
		for _, at := range []time.Time{ticktest.Morning(8, 0), ticktest.Morning(8, 30)} {
			d.Clock.Set(at)
			ticktest.Pass(t, tk)
		}
		for _, c := range []struct {
			beside string
			hour   int
		}{{"the backlog of a worker", 15}, {"a job that stays due, too", 20}} {
			tk.Limit = -1                        // a host that can start no run
			for _, minute := range []int{0, 1} { // the first pass decides, so another one follows at once
				d.Clock.Set(ticktest.Morning(c.hour, minute))
				r := ticktest.Pass(t, tk)
				if wait := r.WakeAt.Sub(d.Clock.Now()); minute == 1 && (wait < time.Minute || wait > 2*time.Minute) {
					t.Errorf("beside %s: the own run is ready since a minute, and is looked at again after %s", c.beside, wait)
				}
			}
			tk.Limit = 0
			if r := ticktest.Pass(t, tk); r.Started != 1 {
				t.Errorf("beside %s: %d started", c.beside, r.Started)
			}
			d.Exec(t, "DELETE FROM "+d.Table("groups"))
		}
	})
}
