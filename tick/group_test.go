package tick_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// standing returns the jobs' newest runs, the oldest first, as "job state held_by".
func standing(t testing.TB, d *storetest.DB) string {
	t.Helper()
	runs, err := d.Runs(t.Context(), store.RunFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range runs {
		list = append(list, strings.TrimSpace(r.Job+" "+r.State+" "+r.HeldBy))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// The jobs of a group share one cap. Free places go by priority, then by time.
func TestGroupCapsSeveralJobs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "two", MaxRunning: 2}, {Name: "one", MaxRunning: 1}}, Jobs: []store.Job{
			ticktest.Grouped("a", "two", 0), ticktest.Grouped("b", "two", 0), ticktest.Grouped("c", "two", 0), ticktest.Grouped("urgent", "two", 5), ticktest.Grouped("x", "one", 0), ticktest.Grouped("y", "one", 0)}})
		ticktest.DecideOnly(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d)
		want := func(when, want string) {
			t.Helper()
			if got := standing(t, d); got != want {
				t.Fatalf("%s: %s", when, got)
			}
		}
		want("due together", "a queued, b waiting group, c waiting group, urgent queued, x queued, y waiting group")
		h := store.Holder{Name: "h", Lease: time.Hour}
		tasks, err := d.Take(t.Context(), "another", 10, h)
		if err != nil || len(tasks) != 3 {
			t.Fatalf("%v: %d taken", err, len(tasks))
		}
		d.Clock.Add(time.Minute)
		ticktest.DecideOnly(t, d)
		want("nothing has ended", "a running, b waiting group, c waiting group, urgent running, x running, y waiting group")
		for i := range tasks {
			if name := tasks[i].Job.Name; name == "urgent" || name == "x" {
				if err := d.EndStep(t.Context(), &tasks[i], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
					t.Fatal(err)
				}
			}
		}
		ticktest.DecideOnly(t, d)
		want("two have ended", "a running, b queued, c waiting group, urgent succeeded, x succeeded, y queued")
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "two", MaxRunning: 3}}})
		ticktest.DecideOnly(t, d)
		want("the cap is raised", "a running, b queued, c queued, urgent succeeded, x succeeded, y queued")
	})
}

// A run that waits for its next try keeps its place in the group, also when a pass decides for another job alone.
func TestGroupKeepsThePlaceOfARunInBackOff(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tries, other := ticktest.Grouped("tries", "one", 0), ticktest.Grouped("other", "one", 0)
		tries.Own, other.Own = &store.Schedule{Rule: "5 8 * * *"}, &store.Schedule{Rule: "6 8 * * *"}
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "one", MaxRunning: 1}}, Jobs: []store.Job{tries, other}})
		ticktest.DecideOnly(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "h", Lease: time.Hour}
		tasks, err := d.Take(t.Context(), "another", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%v: %d taken", err, len(tasks))
		}
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Failed, Retry: true, Backoff: time.Hour}, h); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(time.Minute)
		ticktest.DecideOnly(t, d)
		if got := standing(t, d); got != "other waiting group, tries waiting" {
			t.Error(got)
		}
	})
}

// All runs of a group get their turn within one pass.
func TestGroupIsServedInOnePass(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 1}}}
		for i := range 7 {
			j := ticktest.Grouped(fmt.Sprint("job ", i), "g", 0)
			j.Queue = "tick"
			defs.Jobs = append(defs.Jobs, j)
		}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 7 {
			t.Fatalf("%+v", r)
		}
	})
}

// A job whose group does not exist is parked until the group exists. Other jobs go on.
func TestGroupThatIsUnknownParksItsJobOnly(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{ticktest.Grouped("a", "nowhere", 0)}}, store.ApplyOptions{})
		if err == nil || !strings.Contains(err.Error(), "group: there is no group") {
			t.Fatalf("refused: %v", err)
		}
		other := ticktest.Grouped("b", "", 0)
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 1}}, Jobs: []store.Job{ticktest.Grouped("a", "g", 0), other}})
		d.Exec(t, "DELETE FROM "+d.Table("groups"))
		for range 2 {
			ticktest.Run(t, d)
			if j, err := d.Job(t.Context(), "a"); err != nil || j.State != store.JobParked || !strings.Contains(j.Parked, `there is no group "g"`) {
				t.Fatalf("%v: %s: %s", err, j.State, j.Parked)
			}
			d.Clock.Add(5 * time.Minute)
		}
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 1}}})
		ticktest.Run(t, d)
		if got := standing(t, d); got != "a queued, b queued, b waiting predecessor" && got != "a queued, b queued" {
			t.Fatal(got)
		}
	})
}

// A group whose row was deleted is made again by apply: its jobs are no longer parked, and their runs no longer wait, although
// no job has a next time.
func TestGroupThatIsMadeAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		groups := []store.Group{{Name: "g", MaxRunning: 1}}
		onRequest := func(name string) store.Job {
			return store.Job{Name: name, Group: "g", Queue: "other", Steps: []store.Step{ticktest.Nop("")}}
		}
		ticktest.Apply(t, d, store.Definitions{Groups: groups, Jobs: []store.Job{onRequest("a"), onRequest("b")}})
		for _, name := range []string{"a", "b"} {
			ticktest.Request(t, d, name)
		}
		ticktest.Run(t, d)
		d.Exec(t, "DELETE FROM "+d.Table("groups"))
		if _, err := d.CancelRun(t.Context(), "a#1", store.Author{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		if got, r := standing(t, d), ticktest.Run(t, d); got != "a cancelled, b waiting group" || r.ParkedJobs != 1 {
			t.Fatalf("without the group: %s; %+v", got, r)
		}
		ticktest.Apply(t, d, store.Definitions{Groups: groups})
		r := ticktest.Run(t, d)
		if got := standing(t, d); got != "a cancelled, b queued" || r.ParkedJobs != 0 {
			t.Errorf("with the group: %s; %+v", got, r)
		}
	})
}

// A job that leaves its group while its run executes frees its place: a run that waits for the group goes on, although no
// job has a next time. It does not matter who edits the job. If plain SQL deletes the row of the job, the hourly check finds that.
func TestGroupThatAJobLeaves(t *testing.T) {
	const name = "\"it's\" a \\\\ group"
	aside := func(name, group string) store.Job {
		return store.Job{Name: name, Group: group, Queue: "other", Steps: []store.Step{ticktest.Nop("")}}
	}
	for by, leave := range map[string]func(t *testing.T, d *storetest.DB){
		"apply": func(t *testing.T, d *storetest.DB) {
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{aside("a", "")}})
		},
		"SQL": func(t *testing.T, d *storetest.DB) {
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET group_name = NULL WHERE name = 'a'")
		},
		"delete": func(t *testing.T, d *storetest.DB) { d.Exec(t, "DELETE FROM "+d.Table("jobs")+" WHERE name = 'a'") },
	} {
		t.Run(by, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: name, MaxRunning: 1}}, Jobs: []store.Job{aside("a", name), aside("b", name)}})
				for _, job := range []string{"a", "b"} {
					ticktest.Request(t, d, job)
					ticktest.Run(t, d)
				}
				if tasks, err := d.Take(t.Context(), "other", 10, store.Holder{Name: "h", Lease: 24 * time.Hour}); err != nil || len(tasks) != 1 || tasks[0].Job.Name != "a" {
					t.Fatalf("%v: %d taken", err, len(tasks))
				}
				leave(t, d)
				if by == "delete" {
					d.Clock.Add(time.Hour)
				}
				ticktest.Run(t, d)
				if b := ticktest.LastRun(t, d, "b"); b.State != store.Queued {
					t.Errorf("b is %s, held by %q", b.State, b.HeldBy)
				}
			})
		})
	}
}

// rivals lets eight sessions decide at the same time for the due jobs of one group, each for some of them, and counts
// the runs that they let go. Each session rests between its count and its writes, so that the others could count the
// same. Without the lock, the first rests until a second has counted.
func rivals(t *testing.T, engine string, locked bool) (queued int) {
	const jobs, sessions = 64, 8
	var counted atomic.Int32
	second := make(chan struct{})
	d := storetest.Open(t, engine, store.Options{})
	defs := store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 3}}}
	for i := range jobs {
		defs.Jobs = append(defs.Jobs, ticktest.Grouped(fmt.Sprintf("job %02d", i), "g", 0))
	}
	ticktest.Apply(t, d, defs)
	ticktest.DecideOnly(t, d)
	d.Clock.Add(5 * time.Minute)
	var all sync.WaitGroup
	for range sessions {
		rest := func() { time.Sleep(20 * time.Millisecond) }
		if !locked {
			rest = sync.OnceFunc(func() {
				if counted.Add(1) == 2 {
					close(second)
				}
				select {
				case <-second:
				case <-time.After(time.Minute): // a second one waits for this one
				}
			})
		}
		c := &storetest.Calls{
			Before: func(call storetest.Call) error {
				if strings.HasPrefix(call.SQL, "INSERT INTO") && strings.Contains(call.SQL, "interval_start") {
					rest()
				}
				return nil
			},
			Rewrite: func(text string) string {
				if strings.Contains(text, "group_plans") && !locked {
					return strings.Replace(text, "FOR UPDATE", "", 1)
				}
				return text
			},
		}
		s, err := store.Open(t.Context(), d.URL, store.Options{Clock: d.Clock.Now, Wrap: c.Wrap})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		tk := ticktest.New(t, s)
		tk.Limit, tk.Batch = -1, jobs/sessions
		all.Go(func() {
			if _, err := tk.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'queued'")
}

// Sessions that decide at the same time for jobs of one group keep its cap.
func TestGroupCapIsKeptByRivals(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			if n := rivals(t, e, true); n != 3 {
				t.Errorf("%d runs are let go; the cap is 3", n)
			}
		})
	}
}

// The opposite test: without the lock on the group's row, they let more runs go than the cap allows.
func TestGroupCapIsExceededWithoutTheLock(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" { // one writer at a time, whatever the statements say
			continue
		}
		t.Run(e, func(t *testing.T) {
			if n := rivals(t, e, false); n <= 3 {
				t.Errorf("only %d runs are let go", n)
			}
		})
	}
}

// The order of turns in a group does not depend on the other jobs that are due in the same pass. A new run does not
// pass a run that waits: otherwise, that one might wait for ever.
func TestGroupServesTheOldestFirst(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		daily := func(name, rule string) store.Job {
			j := ticktest.Grouped(name, "one", 0)
			j.Own = &store.Schedule{Rule: rule}
			return j
		}
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "one", MaxRunning: 1}}, Jobs: []store.Job{
			daily("first", "5 8 * * *"), daily("waits", "6 8 * * *"), daily("new", "7 8 * * *")}})
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "h", Lease: time.Hour}
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d)
		tasks, err := d.Take(t.Context(), "another", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%v: %d taken", err, len(tasks))
		}
		d.Clock.Add(time.Minute)
		ticktest.DecideOnly(t, d)
		if got := standing(t, d); got != "first running, waits waiting group" {
			t.Fatalf("before: %s", got)
		}
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(time.Minute)
		ticktest.DecideOnly(t, d)
		if got := standing(t, d); got != "first succeeded, new waiting group, waits queued" {
			t.Fatalf("one ended, and another became due: %s", got)
		}
	})
}
