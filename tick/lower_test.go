package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

func orders(group string, most int) store.Job {
	return store.Job{Name: "orders", Group: group, Queue: "other", Overlap: store.OverlapAllow, MaxRunning: most, Steps: []store.Step{ticktest.Nop("")}}
}

// A cap that is lowered, or that a job gets, holds for queued runs that nobody has taken, too: the oldest keep their places.
func TestLowerCapHoldsQueuedRuns(t *testing.T) {
	var all store.Definitions
	other := orders("g", 9)
	other.Name = "other"
	all.Groups, all.Jobs = []store.Group{{Name: "g", MaxRunning: 9}, {Name: "two", MaxRunning: 2}}, []store.Job{orders("", 9), other}
	for name, c := range map[string]struct {
		job  string
		edit store.Definitions
		want string
	}{
		"max_running":          {"orders", store.Definitions{Jobs: []store.Job{orders("", 2)}}, "orders queued, orders running, orders waiting predecessor, orders waiting predecessor"},
		"a group":              {"orders", store.Definitions{Jobs: []store.Job{orders("two", 9)}}, "orders queued, orders running, orders waiting group, orders waiting group"},
		"max_running of group": {"other", store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 2}}}, "other queued, other running, other waiting group, other waiting group"},
		"nothing":              {"orders", store.Definitions{Jobs: []store.Job{orders("", 8)}}, "orders queued, orders queued, orders queued, orders running"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, all)
				var ids []string
				for range 4 {
					ticktest.DecideOnly(t, d)
					d.Clock.Add(time.Second)
					ids = append(ids, ticktest.RunNow(t, d, c.job, store.Request{}).ID)
				}
				ticktest.DecideOnly(t, d)
				if _, err := d.Take(t.Context(), "other", 1, store.Holder{Name: "h", Lease: time.Hour}); err != nil {
					t.Fatal(err)
				}
				ticktest.Apply(t, d, c.edit)
				ticktest.DecideOnly(t, d)
				if got := standing(t, d); got != c.want {
					t.Errorf("%s, want\n%s", got, c.want)
				}
				for i, id := range ids[:2] {
					if r, err := d.Run(t.Context(), id); err != nil || r.State != [...]string{store.Running, store.Queued}[i] {
						t.Errorf("run %d is %s, %v", i+1, r.State, err)
					}
				}
			})
		})
	}
}

// Runs that were taken ahead of their turn are running while a cap is lowered. Once they are given back, the cap holds for them, too.
func TestLowerCapHoldsRunsThatAreGivenBack(t *testing.T) {
	two := []store.Group{{Name: "g", MaxRunning: 2}}
	for name, c := range map[string]struct {
		job  store.Job
		edit store.Definitions
		want string
	}{
		"max_running":          {orders("", 9), store.Definitions{Jobs: []store.Job{orders("", 2)}}, "orders queued, orders running, orders waiting predecessor, orders waiting predecessor"},
		"max_running of group": {orders("g", 9), store.Definitions{Groups: two}, "orders queued, orders running, orders waiting group, orders waiting group"},
		"nothing":              {orders("g", 9), store.Definitions{}, "orders queued, orders queued, orders queued, orders running"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 9}}, Jobs: []store.Job{c.job}})
				for range 4 {
					ticktest.RunNow(t, d, "orders", store.Request{})
				}
				ticktest.DecideOnly(t, d)
				tasks, err := d.Take(t.Context(), "other", 9, store.Holder{Name: "h", Lease: time.Hour})
				if err != nil || len(tasks) != 4 {
					t.Fatal(err, len(tasks))
				}
				ticktest.Apply(t, d, c.edit)
				ticktest.DecideOnly(t, d)
				var ahead []*store.Task
				for i := range tasks[1:] {
					ahead = append(ahead, &tasks[1+i])
				}
				if given, err := d.GiveBack(t.Context(), ahead); err != nil || len(given) != 3 {
					t.Fatal(err, len(given))
				}
				for range 2 { // the second decision finds nothing to change
					ticktest.DecideOnly(t, d)
					if got := standing(t, d); got != c.want {
						t.Errorf("%s, want\n%s", got, c.want)
					}
				}
			})
		})
	}
}
