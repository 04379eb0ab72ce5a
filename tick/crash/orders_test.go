package crash

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// turns decides which process makes the next call, where two processes work on the same rows. It puts
// the first eight calls of each process in order that lock, write or read such rows, from the first call on that its
// gate matches. The other calls are free.
type turns struct {
	mu    sync.Mutex
	moved *sync.Cond
	left  []int // the sides in the order of their turns: 0 or 1
	alone bool  // a transaction keeps all other writers out, as on SQLite: a side that would wait for one lets the other go first
	sides [2]side
}

// ordered are the calls that have a turn: those that begin or end a transaction, write, or read plans and runs in one.
var ordered = regexp.MustCompile(`^(begin|commit|exec|act)|^query SELECT (job_id, owner, version|r\.id, r\.job_id|(c\.)?id\s+FROM)`)

type side struct {
	gate                           *regexp.Regexp
	open                           int // transactions
	kind                           string
	gated, waiting, under, blocked bool
	turn                           bool     // the call has one
	made                           []string // the calls that had
	ended                          bool
	calls                          int
}

func newTurns(order []int, alone bool, gates [2]*regexp.Regexp) *turns {
	t := &turns{left: order, alone: alone}
	t.moved = sync.NewCond(&t.mu)
	for i := range t.sides {
		t.sides[i].gate = gates[i]
	}
	return t
}

// attach lets the calls of a side wait for their turns.
func (t *turns) attach(c *storetest.Calls, me int) {
	c.Before = func(call storetest.Call) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		s := &t.sides[me]
		text := call.Kind + " " + call.SQL
		s.gated = s.gated || s.gate.MatchString(text)
		s.turn = s.gated && ordered.MatchString(text)
		s.kind, s.waiting = call.Kind, true
		t.moved.Broadcast()
		for !t.goes(me) {
			t.moved.Wait()
		}
		s.waiting = false
		if at := slices.Index(t.left, me); s.turn && at >= 0 {
			t.left, s.made = slices.Delete(t.left, at, at+1), append(s.made, text)
		}
		s.under, s.calls = true, s.calls+1
		number := s.calls
		time.AfterFunc(100*time.Millisecond, func() { // it waits for a lock of the other side
			t.mu.Lock()
			defer t.mu.Unlock()
			if s.under && s.calls == number {
				s.blocked = true
				t.moved.Broadcast()
			}
		})
		return nil
	}
	c.After = func(call storetest.Call) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		s := &t.sides[me]
		switch call.Kind {
		case storetest.Begin:
			s.open++
		case storetest.Commit, storetest.Rollback:
			s.open--
		}
		s.under, s.blocked = false, false
		t.moved.Broadcast()
		return nil
	}
}

// goes reports whether the call of a side may begin.
func (t *turns) goes(me int) bool {
	my, other := &t.sides[me], &t.sides[1-me]
	waits := func(s, holder *side) bool { // a writer waits for the transaction of the other side
		return t.alone && s.open == 0 && holder.open > 0 && slices.Contains([]string{storetest.Begin, storetest.Exec, storetest.Act}, s.kind)
	}
	switch {
	case waits(my, other):
		return false
	case !my.turn, !slices.Contains(t.left, me): // not one of the calls that are put in order
		return true
	case other.under && !other.blocked:
		return false
	case t.left[0] == me, other.ended, other.blocked:
		return true
	}
	return other.waiting && waits(other, my)
}

func (t *turns) end(me int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sides[me].ended, t.sides[me].open = true, 0
	t.moved.Broadcast()
}

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

// each is how many calls of each side are put in order.
const each = 8

// orders returns the 12,870 ways to mix the calls of one side with those of the other. If both sides do the same, half of them
// are the other half, with other names.
func orders(c *contest) [][]int {
	var all [][]int
	for mask := range uint32(1) << (2 * each) {
		if bits.OnesCount32(mask) != each || c.alike && mask&1 == 1 {
			continue
		}
		order := make([]int, 2*each)
		for i := range order {
			order[i] = int(mask >> i & 1)
		}
		all = append(all, order)
	}
	return all
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
		if err != nil {
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
	for _, first := range []int{1, 0} {
		order := slices.Concat(slices.Repeat([]int{first}, each), slices.Repeat([]int{1 - first}, each))
		t, r, wrong := w.turns(c, order)
		if len(wrong) > 0 {
			w.t.Fatalf("one after the other, side %d first: %q", first, wrong)
		}
		made := strings.Join(t.sides[first].made, "\n")
		if n := len(t.sides[first].made); n < each || !reads.MatchString(made) || !writes.MatchString(made) {
			w.t.Fatalf("side %d: %d calls are put in order, want %d, that read runs and write:\n%s", first, n, each, made)
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
				all := orders(&c)
				list, most := all, map[string]int{"sqlite": 25, "postgres": 8, "mariadb": 8}[storetest.Dialect(e)]
				if !prove.Whole() {
					list = nil
					for i := 0; i < len(all); i += len(all) / most {
						list = append(list, all[i])
					}
				}
				worlds, models := make([]*world, sideBySide(e)), make([]*record, sideBySide(e))
				for i := range worlds {
					worlds[i] = newWorld(t, e, nil)
					models[i] = worlds[i].prepare(&c)
				}
				share(len(worlds), list, func(i int, order []int) {
					r, wrong := worlds[i].meet(&c, order)
					if r != nil {
						wrong = append(wrong, r.differences(models[i])...)
					}
					if len(wrong) > 0 {
						t.Errorf("order %v: %s", order, strings.Join(wrong, "\n  "))
					}
				})
				t.Logf("%s: %d of %d orders", c.name, len(list), len(all))
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
