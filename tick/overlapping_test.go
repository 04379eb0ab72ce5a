package tick_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// overlapped is an executor whose steps take twelve seconds, of which two are left when the next tick comes.
type overlapped struct {
	t      *testing.T
	d      *storetest.DB
	within int // steps of the pass that is under way
	most   int // to be told from one that never ends
}

func (o *overlapped) pass() *tick.Tick {
	tk := ticktest.New(o.t, o.d.Store)
	tk.Now, tk.Executors["overlapped"] = o.d.Clock.Now, o
	return tk
}

func (o *overlapped) Execute(ctx context.Context, _ executor.Request) (executor.Result, error) {
	if o.within++; o.within > o.most {
		o.t.Errorf("step %d of one pass", o.within)
		return executor.Result{}, nil
	}
	o.d.Clock.Add(10 * time.Second)
	before := o.within
	tk := o.pass()
	tk.Holder = "beside " + o.d.Clock.Now().String()
	if _, err := tk.Run(ctx); err != nil {
		o.t.Error(err)
	}
	o.within = before // a step of that pass is none of this one
	o.d.Clock.Add(2 * time.Second)
	return executor.Result{}, nil
}

// A job of twelve seconds each ten, with a tick each ten: whatever they make beside a pass that is under way, it ends with
// the runs that it found, and what follows on them, and the next tick takes what is left.
func TestOverlappingTicksKeepNoneAlive(t *testing.T) {
	long := []store.Step{{Executor: "overlapped", Spec: []byte("{}")}}
	quick := []store.Step{ticktest.Step("", "SELECT 1")}
	rule := &store.Schedule{Rule: "every 10s"}
	for name, jobs := range map[string][]store.Job{
		"own run":            {{Name: "a", Own: rule, Steps: long}},
		"what follows on it": {{Name: "a", Own: rule, Steps: quick}, {Name: "f", After: "a", Steps: long}},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
				ticktest.Run(t, d)
				d.Clock.Add(10 * time.Second)
				for range 6 {
					// What it finds, its own run, and what follows on that.
					most := 2 + d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE settled_at IS NULL")
					began := d.Clock.Now()
					o := &overlapped{t: t, d: d, most: most}
					r, err := o.pass().Run(t.Context())
					if err != nil || r.Started == 0 {
						t.Fatalf("%v: %+v", err, r)
					}
					if took := d.Clock.Now().Sub(began); took > time.Duration(most)*12*time.Second {
						t.Errorf("a pass took %s", took)
					}
					d.Clock.Set(d.Clock.Now().Add(10 * time.Second).Truncate(10 * time.Second))
				}
				if name != "own run" { // there, what waits grows
					return
				}
				began := d.Clock.Now()
				o := &overlapped{t: t, d: d, most: 8}
				tk := o.pass()
				tk.Sleep = func(_ context.Context, for_ time.Duration) { d.Clock.Add(for_) }
				if _, err := tk.RunFor(t.Context(), 55*time.Second); err != nil {
					t.Fatal(err)
				}
				if took := d.Clock.Now().Sub(began); took > (55+2*12)*time.Second {
					t.Errorf("for 55s it took %s", took)
				}
			})
		})
	}
}
