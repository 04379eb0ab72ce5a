package tick

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// A take that asks for no run, because more than half of the runs taken ahead still wait, does not count as one that
// found no run. The next take comes as soon as half of them have begun, and no place is idle until the line is empty. A
// pass that may take no more runs reports that.
func TestTakenAheadIsEnough(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx           context.Context
		waiting       int
		limit         int
		enough, found bool
	}{
		"enough":             {t.Context(), mostAhead/2 + 1, 0, true, true},
		"enough, limit":      {t.Context(), mostAhead/2 + 1, 5, true, true},
		"half, limit is met": {t.Context(), mostAhead / 2, 5, false, false},
		"the pass is over":   {over, mostAhead/2 + 1, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pass{t: &Tick{Now: time.Now, Limit: c.limit}}
			p.size, p.busy, p.report.Started = 2, 2, 5
			for range c.waiting {
				p.line.add(&held{})
			}
			if _, _, enough := p.mayStart(c.ctx); enough != c.enough {
				t.Errorf("enough: %t", enough)
			}
			p.full = true // as the last take has found
			if err := p.take(c.ctx); !errors.Is(err, c.ctx.Err()) || p.taken != 0 || p.full != c.found {
				t.Errorf("%v: taken %d, full %t, want %t", err, p.taken, p.full, c.found)
			}
		})
	}
}

// The time that a run has waited goes on while the line is looked through: each run either stays or leaves, never both.
func TestLineIsLeftOnce(t *testing.T) {
	var l line
	for range 3 {
		l.add(&held{queue: "a"})
	}
	asked := 0
	gone := l.leave(func(*held) bool { asked++; return asked > 2 })
	for left := len(gone); left < 3; left++ {
		if l.n != 3-left {
			t.Fatalf("%d runs have left, and the line counts %d", left, l.n)
		}
		if slices.Contains(gone, l.next()) {
			t.Error("a run that has left is still in the line")
		}
	}
	if l.n != 0 || len(l.of) != 0 {
		t.Errorf("the line counts %d, and has %d queues", l.n, len(l.of))
	}
}

// A pass that takes nothing any more, and in which no run executes, still decides once more for the runs that have ended since
// its last round of decisions began, wherever it has seen these ends.
func TestEndsAreDecidedFor(t *testing.T) {
	p := &pass{t: &Tick{Now: time.Now}, decisions: decisions{decided: true}}
	p.init(1)
	h := &held{Task: store.Task{Run: store.Run{ID: "a", State: store.Failed}}, stop: func(error) {}}
	p.running[deliveryOf(&h.Task)] = h
	if err := p.decide(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	p.ended = append(p.ended, &result{held: h})
	if p.quiet() {
		t.Error("quiet, while an end is not in the report yet")
	}
	if n := p.settleAll(); n != 1 || p.quiet() {
		t.Errorf("quiet, right after %d ends", n)
	}
	if err := p.decide(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if !p.quiet() {
		t.Error("not quiet, although the decisions that follow from the end are made")
	}
}
