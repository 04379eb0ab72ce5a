package crash

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// contest is what two processes do at once.
type contest struct {
	name  string
	setup func(*world)
	sides [2]contestant
	alike bool // both sides do the same
}

type contestant struct {
	gate *regexp.Regexp
	run  func(p *runner, holder string) error
}

// contests returns one contest for each of the three places where passes meet: the plans, the queued
// runs, and a run whose lease has ended while its holder goes on.
func contests() []contest {
	passes := func(gate string, decide bool) contestant {
		return contestant{regexp.MustCompile(gate), func(p *runner, holder string) error {
			_, err := p.pass(&stage{decide: decide}, holder)
			return err
		}}
	}
	deciding, taking := passes(`^begin`, true), passes(`^query SELECT id FROM \S*runs WHERE`, false)
	jobs := func(w *world) { w.define(w.jobs("chain", "doomed", "told", "replaced", "shared")) }
	return []contest{
		{"decide", func(w *world) {
			jobs(w)
			w.mustPass(false)
			w.d.Clock.Add(3 * time.Hour)
		}, [2]contestant{deciding, deciding}, true},
		{"take", func(w *world) {
			jobs(w)
			w.mustPass(false)
			w.d.Clock.Add(3 * time.Hour)
			w.mustPass(true)
		}, [2]contestant{taking, taking}, true},
		{"recover", func(w *world) {
			w.define(w.jobs("chain"))
			w.mustPass(false)
			w.d.Clock.Add(3 * time.Hour)
			w.mustPass(true)
			w.hold()
			w.d.Clock.Add(10 * time.Minute)
		}, [2]contestant{{regexp.MustCompile(`^begin`), (*runner).goOn}, deciding}, false},
	}
}

func (w *world) mustPass(decide bool) {
	if _, err := w.pass(&stage{decide: decide}, nil); err != nil {
		w.t.Fatal(err)
	}
}

// hold takes a run. goOn works on it when its lease has ended.
func (w *world) hold() {
	tasks, err := w.d.Take(context.Background(), "tick", 1, holding)
	if err != nil || len(tasks) != 1 {
		w.t.Fatal(err, tasks)
	}
	w.held = tasks[0]
}

var (
	holding    = store.Holder{Name: "holding", Lease: time.Minute}
	errRobbery = errors.New("a run was taken from a holder that had reported in time")
)

func (p *runner) goOn(string) error {
	ctx, t := context.Background(), p.w.held
	for i := range t.Job.Steps {
		if err := p.calls.Act("work", func() error { return p.w.mark(&t) }); err != nil {
			return err
		}
		end := store.StepEnd{State: store.Succeeded, NextStep: i + 2}
		if i+1 == len(t.Job.Steps) {
			end = store.StepEnd{State: store.Succeeded, Final: store.Succeeded}
		}
		switch err := p.store.EndStep(ctx, &t, end, holding); {
		case errors.Is(err, store.ErrOutdated) && i == 0: // it came too late
			return nil
		case errors.Is(err, store.ErrOutdated):
			return errRobbery
		case err != nil:
			return err
		}
	}
	return nil
}

// each is how many calls of each side are put in order, and more on SQLite, where few orders can happen.
func (c *contest) each(engine string) int {
	if engine == "sqlite" {
		return 14
	}
	return 8
}

// meet lets two processes work in an order. Then passes come until it is quiet.
func (w *world) meet(c *contest, order []int) (*record, []string) {
	_, r, wrong := w.turns(c, order)
	return r, wrong
}

func (w *world) turns(c *contest, order []int) (*turns, *record, []string) {
	w.restore("contest")
	w.d.Clock.Set(w.began)
	t := newTurns(slices.Clone(order), w.d.Engine == "sqlite", [2]*regexp.Regexp{c.sides[0].gate, c.sides[1].gate})
	var errs [2]error
	var both sync.WaitGroup
	for i := range c.sides {
		p := w.staying(i)
		t.attach(p.calls, i)
		both.Go(func() {
			defer t.end(i)
			errs[i] = c.sides[i].run(p, fmt.Sprint("side ", i))
		})
	}
	both.Wait()
	var wrong []string
	for i, err := range errs {
		if err != nil && !errors.Is(err, store.ErrLocked) { // it gives up where the other side keeps a lock, and says so
			wrong = append(wrong, fmt.Sprintf("side %d: %v", i, err))
		}
	}
	w.d.Clock.Add(between)
	if err := w.passes(&stage{}, nil, nil); err != nil {
		wrong = append(wrong, err.Error())
	}
	r, err := w.read()
	if err != nil {
		w.t.Error(err)
		return t, nil, wrong
	}
	return t, r, append(wrong, r.wrong...)
}

// prepare leaves the database as it is before the two meet, and returns the record that it must have afterwards, where side 0 comes
// first. A side that comes first locks, reads runs and writes in the calls that are put in order: otherwise, no order would
// tell anything.
func (w *world) prepare(c *contest) (model *record) {
	c.setup(w)
	w.snapshot("contest")
	w.began = w.d.Clock.Now()
	each := c.each(w.d.Engine)
	for _, first := range []int{1, 0} {
		order := slices.Concat(slices.Repeat([]int{first}, each), slices.Repeat([]int{1 - first}, each))
		t, r, wrong := w.turns(c, order)
		for again := 0; t.passed(first) && again < 20; again++ { // the machine was so slow that a call seemed to wait for a lock
			t, r, wrong = w.turns(c, order)
		}
		if len(wrong) > 0 {
			w.t.Fatalf("one after the other, side %d first: %q", first, wrong)
		}
		made := strings.Join(t.sides[first].made, "\n")
		if n := len(t.sides[first].made); n < 8 || !reads.MatchString(made) || !writes.MatchString(made) {
			w.t.Fatalf("side %d: %d calls are put in order, want 8 or more, that read runs and write:\n%s", first, n, made)
		}
		model = r
	}
	return model
}

var (
	reads  = regexp.MustCompile(`(?m)^query SELECT r\.id, r\.job_id|^act`)
	writes = regexp.MustCompile(`(?m)^exec`)
)

// Two processes work on the same rows, with their calls in every order: nothing is lost, nothing doubled.
func TestOrdersOfTwoPasses(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		for _, c := range contests() {
			t.Run(e+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				most := map[string]int{"sqlite": 25, "postgres": 8, "mariadb": 8}[storetest.Dialect(e)]
				worlds, models := make([]*world, sideBySide(e)), make([]*record, sideBySide(e))
				for i := range worlds {
					worlds[i] = newWorld(t, e, nil)
					models[i] = worlds[i].prepare(&c)
				}
				s := search{each: c.each(e), next: []beginning{{turns: []int{0}}}}
				if !c.alike { // otherwise, the other half are these, with other names
					s.next = append(s.next, beginning{turns: []int{1}})
				}
				s.run(len(worlds), most, func(i int, order []int) *turns {
					turns, r, wrong := worlds[i].turns(&c, order)
					if r != nil {
						wrong = append(wrong, r.differences(models[i])...)
					}
					if len(wrong) > 0 {
						t.Errorf("order %v: %s", order, strings.Join(wrong, "\n  "))
					}
					return turns
				})
				t.Logf("%s: %d orders in %d rounds; %d differ from others in nothing; %d cannot happen; in %d, a call was so slow that this is not certain",
					c.name, s.tried, s.rounds, s.same, s.cannot, s.slow)
			})
		}
	}
}

// The twin without the comparison of the lease that was read: a holder that reported in the meantime loses its run.
func TestOrdersSeeTheLeaseUnguarded(t *testing.T) {
	t.Parallel()
	report := make([]int, 5) // begin, the run, its attempt, the next one, commit
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" { // nobody writes there between a decision's read and its write
			continue
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			tw := &twin{gone: []guard{without(` AND \(d\.lease IS NULL OR r\.lease_until = d\.lease\)`)}}
			c := contests()[2]
			w := newWorld(t, e, tw)
			w.prepare(&c)
			if kept := tw.kept(e); len(kept) > 0 {
				t.Fatalf("no statement has these guards, which are therefore still there: %q", kept)
			}
			each := c.each(e)
			for n := 1; n < each; n++ { // the holder reports after n calls of the decision
				order := slices.Concat(slices.Repeat([]int{1}, n), report, slices.Repeat([]int{1}, each-n), slices.Repeat([]int{0}, each-len(report)))
				if _, wrong := w.meet(&c, order); slices.Contains(wrong, "side 0: "+errRobbery.Error()) {
					t.Logf("found after %d calls", n)
					return
				}
			}
			t.Error("nothing found")
		})
	}
}

// The twin in which two decisions meet, because neither the lock nor the version of a plan keeps one of them out.
func TestOrdersSeeTheLocksGone(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" { // it has one writer, whatever the statements say
			continue
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			c, w := contests()[0], newWorld(t, e, nil)
			model := w.prepare(&c)
			w.twin, w.warm = &twin{gone: append(slices.Clone(locks), planVersion)}, nil
			for n := 1; n < c.each(e); n++ { // the second side begins after n calls of the first
				b := beginning{turns: append(slices.Repeat([]int{0}, n), 1)}
				if r, wrong := w.meet(&c, b.order(c.each(e))); r == nil || len(wrong)+len(r.differences(model)) > 0 {
					t.Logf("found after %d calls", n)
					return
				}
			}
			t.Error("nothing found")
		})
	}
}
