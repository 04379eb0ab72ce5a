package tick_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// inQueues makes n runs of a job in each queue, and lets them go. The last one of each queue is the most urgent.
func inQueues(t testing.TB, d *storetest.DB, n int, queues ...string) {
	t.Helper()
	var defs store.Definitions
	for _, q := range queues {
		for i := range n {
			p := 0
			if i == n-1 {
				p = 7
			}
			defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprintf("%s %d", q, i), Queue: q, Priority: p, Steps: []store.Step{ticktest.Call("")}})
		}
	}
	ticktest.Apply(t, d, defs)
	ticktest.Run(t, d)
	for _, j := range defs.Jobs {
		d.Clock.Add(time.Millisecond) // ids sort by it
		ticktest.RunNow(t, d, j.Name, store.Request{})
	}
	ticktest.DecideOnly(t, d)
}

// worker is a worker that notes the runs that it executes, in order. By its clock nothing takes time, so a slow machine
// does not make it return the runs that it has taken ahead.
func worker(t testing.TB, d *storetest.DB) (tk *tick.Tick, executed func() []string) {
	t.Helper()
	var mu sync.Mutex
	var list []string
	tk = ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, r.Task.Job.Name)
		return executor.Result{}, nil
	})
	tk.Now = d.Clock.Now
	return tk, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(list) }
}

// inTurn is the order in which the runs of these queues are taken, if the first run that was executed has the first turn.
func inTurn(executed, queues []string, runs ...string) (order []string) {
	first, _, _ := strings.Cut(strings.Join(executed, " "), " ")
	i := max(slices.Index(queues, first), 0)
	for _, run := range runs {
		for _, queue := range slices.Concat(queues[i:], queues[:i]) {
			order = append(order, queue+" "+run)
		}
	}
	return order
}

// nearlyInTurn reports whether each queue is in order, and none is two of its turns ahead of another. On
// MariaDB a take may pass over a row that is locked for a moment, and its queue then has its turn later.
func nearlyInTurn(order []string) bool {
	had := map[string]int{"a": 0, "b": 0, "c": 0}
	runs := []string{"2", "0", "1"}
	for _, name := range order {
		queue, run, _ := strings.Cut(name, " ")
		if run != runs[had[queue]] {
			return false
		}
		had[queue]++
		if had[queue]-min(had["a"], had["b"], had["c"]) > 2 {
			return false
		}
	}
	return true
}

// Passes that take one run each serve all queues, also where the first one is never empty.
func TestQueuesOfPassesThatTakeFewRuns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		inQueues(t, d, 1, "a", "b", "c")
		tk, executed := worker(t, d)
		tk.Limit, tk.Concurrency = 1, 1
		served := map[string]bool{}
		for i := 0; len(served) < 3; i++ { // each is first with a chance of one in three
			if _, err := tk.Work(t.Context()); err != nil || i == 70 || len(executed()) != i+1 {
				t.Fatalf("%v: %d passes have executed %v", err, i+1, executed())
			}
			last := executed()[i]
			served[last] = true
			ticktest.RunNow(t, d, last, store.Request{})
			ticktest.DecideOnly(t, d)
		}
	})
}

// A worker that names no queue takes from each in turn, and leaves that of the ticks alone.
func TestQueuesAreTakenFromInTurn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		inQueues(t, d, 3, "a", "b", "tick", "c")
		tk, executed := worker(t, d)
		tk.Concurrency = 1
		r, err := tk.Work(t.Context())
		if err != nil || r.Started != 9 || r.Succeeded != 9 || r.Decided != 0 {
			t.Fatalf("%v: %+v", err, r)
		}
		got := executed()
		want := inTurn(got, []string{"a", "b", "c"}, "2", "0", "1")
		if !slices.Equal(got, want) && (d.Engine != "mariadb" || !nearlyInTurn(got)) {
			t.Errorf("in the order %v, want %v", got, want)
		}
		if again, err := tk.Work(t.Context()); err != nil || again.Started != 0 {
			t.Fatalf("again: %v: %+v", err, again)
		}
		left := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'queued' AND queue = 'tick'")
		silent := d.Int(t, "SELECT count(*) FROM "+d.Table("ticks")+" WHERE started > 0")
		if left != 3 || silent != 0 {
			t.Errorf("%d runs are left to the tick, %d passes of workers on record", left, silent)
		}
	})
}

// A worker takes from the queues that it names, and from no others.
func TestQueuesOfAWorkerAreThoseNamed(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		inQueues(t, d, 2, "a", "b", "tick")
		tk, executed := worker(t, d)
		tk.Queues, tk.Concurrency = []string{"b", "nobody's", "tick", "b"}, 1
		if r, err := tk.Work(t.Context()); err != nil || r.Started != 4 {
			t.Fatalf("%v: %+v", err, r)
		}
		if want := inTurn(executed(), []string{"b", "tick"}, "1", "0"); !slices.Equal(executed(), want) {
			t.Errorf("in the order %v, want %v", executed(), want)
		}
	})
}

// A worker takes the runs that are there when it begins. Each of them requests another one, which is left to the next worker:
// a queue that is never empty keeps no worker.
func TestQueuesOfAWorkerMayGrow(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		const runs = 3
		inQueues(t, d, runs, "a")
		begun := 0
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			d.Clock.Add(time.Second)
			if begun++; begun <= 2*runs {
				ticktest.RunNow(t, d, r.Task.Job.Name, store.Request{})
				ticktest.DecideOnly(t, d)
			}
			return executor.Result{}, nil
		})
		tk.Concurrency = 1
		for worker := range 2 {
			if r, err := tk.Work(t.Context()); err != nil || r.Succeeded != runs {
				t.Fatalf("worker %d: %v: %d runs succeeded, want %d", worker, err, r.Succeeded, runs)
			}
			ticktest.DecideOnly(t, d)
		}
	})
}

// Free places are shared out among the queues. A queue that has few runs leaves the rest to the others.
func TestQueuesShareWhatIsFree(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		inQueues(t, d, 6, "a")
		inQueues(t, d, 1, "z")
		var mu sync.Mutex
		var first []string
		all := make(chan struct{})
		tk := ticktest.NewDoing(t, d, func(ctx context.Context, r executor.Request) (executor.Result, error) {
			mu.Lock()
			if first = append(first, r.Task.Job.Name); len(first) == 4 {
				close(all)
			}
			mu.Unlock()
			select {
			case <-all:
			case <-ctx.Done():
			}
			return executor.Result{}, nil
		})
		tk.Concurrency = 4
		if r, err := tk.Work(t.Context()); err != nil || r.Succeeded != 7 {
			t.Fatalf("%v: %+v", err, r)
		}
		slices.Sort(first[:4])
		if got := strings.Join(first[:4], ", "); got != "a 0, a 1, a 5, z 0" {
			t.Errorf("the first four: %s", got)
		}
	})
}

// While everything is paused, a worker gets nothing.
func TestQueuesArePausedWithTheDatabase(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		inQueues(t, d, 1, "a")
		d.Exec(t, "INSERT INTO "+d.Table("pauses")+" (scope) VALUES ('all')")
		tk, _ := worker(t, d)
		if r, err := tk.Work(t.Context()); err != nil || !r.Frozen || r.Started != 0 {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

// A priority can have any value that the column can hold, and the order is right at both ends.
func TestQueueOrderAtTheEndsOfPriority(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		names := []string{"least", "usual", "most"}
		var defs store.Definitions
		for i, p := range []int{math.MinInt32, 0, math.MaxInt32} {
			defs.Jobs = append(defs.Jobs, store.Job{Name: names[i], Priority: p, Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Call("")}})
		}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Clock.Add(6 * time.Minute)
		tk, executed := worker(t, d)
		tk.Concurrency = 1
		if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != 3 {
			t.Fatalf("%v: %+v", err, r)
		}
		if slices.Reverse(names); !slices.Equal(executed(), names) {
			t.Errorf("%q", executed())
		}
	})
}

// Runs that plain SQL requests have ids that contain no time, such as gen_random_uuid() and UUID() make. Still, a queue
// is first in, first out, a job's requests run in their order, and the list has the newest first.
func TestQueueOrderIsByTimeWhateverTheIDs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		one := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Overlap: "wait-all", Steps: one}, {Name: "b", Steps: one}, {Name: "c", Steps: one}}})
		ticktest.Run(t, d)
		var want []string // in the order in which they were asked for
		for i, ask := range []struct{ job, id string }{
			{"c", "f1"}, {"a", "b2"}, {"a", "a3"}, {"b", "04"}, {"a", "55"}, {"a", "06"},
		} {
			id := ask.id + "000000-0000-4000-8000-00000000000" + fmt.Sprint(i)
			d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, job_id, occurrence, ready_at, created_at) SELECT '%s', id, 'now:%d', %[4]s, %[4]s FROM %[5]s WHERE name = '%s'",
				d.Table("runs"), id, i, ticktest.Literal(d, d.Clock.Now()), d.Table("jobs"), ask.job))
			want = append(want, id)
			d.Clock.Add(time.Second)
		}
		tk := ticktest.New(t, d.Store)
		tk.Limit, tk.Concurrency = 1, 1
		var took []string
		for range want {
			r, err := tk.Run(t.Context())
			if err != nil || len(r.Runs) != 1 {
				t.Fatalf("%v: %+v", err, r)
			}
			took = append(took, r.Runs[0].ID)
		}
		// Of the job a, one run executes at a time, and a new one is requested when it has ended.
		if !slices.Equal(took, want) {
			t.Errorf("taken in the order %v, want %v", took, want)
		}
		list, err := d.Runs(t.Context(), store.RunFilter{})
		if err != nil || len(list) != len(want) {
			t.Fatalf("%v: %+v", err, list)
		}
		var told []string
		for i := range list {
			told = append(told, list[i].ID)
		}
		slices.Reverse(told)
		if !slices.Equal(told, want) {
			t.Errorf("listed in the order %v, want %v, the newest first", told, want)
		}
	})
}

// How long the oldest run of all queues has been ready, whatever its priority. A run that was held may come before it.
func TestQueueReportsItsOldestRun(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		now := d.Clock.Now()
		oldest := func(want time.Time) {
			t.Helper()
			tk := ticktest.New(t, d.Store)
			tk.Gauges, tk.Limit = true, -1
			r, err := tk.Run(t.Context())
			if err != nil || !r.OldestQueued.Equal(want) {
				t.Errorf("%v: %s, want %s", err, r.OldestQueued, want)
			}
		}
		oldest(time.Time{})
		for i, r := range []struct {
			queue    string
			priority int
			hours    int
			state    string
		}{{"b", 0, 6, "queued"}, {"b", 0, 5, "queued"}, {"b", 0, 3, "queued"}, {"a", 7, 2, "queued"}, {"a", -1, 4, "queued"}, {"a", 7, 1, "queued"}, {"c", 1, 2, "queued"}, {"c", 1, 9, "succeeded"}} {
			d.Exec(t, fmt.Sprintf(`INSERT INTO %s (id, job_id, occurrence, state, queue, priority, ready_at, created_at, settled_at)
				VALUES ('00000000-0000-7000-9000-00000000000%d', 1, 'now:%d', '%s', '%s', %d, %s, %s, %s)`, d.Table("runs"), i, i, r.state, r.queue, r.priority,
				ticktest.Literal(d, now.Add(-time.Duration(r.hours)*time.Hour)), ticktest.Literal(d, now), map[bool]string{true: ticktest.Literal(d, now), false: "NULL"}[r.state == "succeeded"]))
		}
		d.Exec(t, fmt.Sprintf("UPDATE %s SET queued_at = %s WHERE ready_at < %s AND state = 'queued'", d.Table("runs"), ticktest.Literal(d, now.Add(-2*time.Hour)), ticktest.Literal(d, now.Add(-4*time.Hour))))
		oldest(now.Add(-4 * time.Hour))
		d.Exec(t, "DELETE FROM "+d.Table("runs")+" WHERE queue = 'a'")
		oldest(now.Add(-3 * time.Hour))
	})
}
