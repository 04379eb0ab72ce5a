package crash

import (
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// turns decides which process makes the next call, where two processes work on the same rows. It puts
// the first calls of each process in order that lock, write or read such rows, from the first call on that its
// gate matches. No side passes its gate before the other is at its own, or has ended: what they read until then is the
// same in every order. The other calls are free.
type turns struct {
	mu      sync.Mutex
	moved   *sync.Cond
	left    []int    // the sides in the order of their turns: 0 or 1
	did     []int    // the turns as they were taken: a side that waits for a lock, or has ended, lets the other go first
	effects []effect // of the call of each
	only    []bool   // the other side could not have taken this turn
	alone   bool     // a transaction keeps all other writers out, as on SQLite: a side that would wait for one lets the other go first
	slow    bool     // a call took so long that it counted as one that waits for a lock, and was not: the turns depend on the machine
	sides   [2]side
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
	frees                          int  // its calls that may have freed what the other waits for
	freed                          int  // those of the other, when this side began to wait
	failed                         bool // the call
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
			t.did, t.effects, s.made = append(t.did, me), append(t.effects, t.effect(call, s.open > 0)), append(s.made, text)
			t.only = append(t.only, at > 0 || t.cannot(1-me))
			t.left = slices.Delete(t.left, at, at+1)
		}
		s.under, s.failed, s.calls = true, false, s.calls+1
		number := s.calls
		time.AfterFunc(100*time.Millisecond, func() { // it waits for a lock of the other side
			t.mu.Lock()
			defer t.mu.Unlock()
			if s.under && s.calls == number {
				s.blocked, s.freed = true, t.sides[1-me].frees
				t.moved.Broadcast()
			}
		})
		return nil
	}
	c.Failed = func(storetest.Call, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.sides[me].failed = true
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
		if s.open == 0 {
			s.frees++
		}
		other := &t.sides[1-me]
		freed := !t.alone && (s.freed < other.frees || other.under && (other.open == 0 || other.kind == storetest.Commit || other.kind == storetest.Rollback))
		t.slow = t.slow || s.blocked && !s.failed && !freed
		s.under, s.blocked = false, false
		t.moved.Broadcast()
		return nil
	}
}

// goes reports whether the call of a side may begin.
func (t *turns) goes(me int) bool {
	my, other := &t.sides[me], &t.sides[1-me]
	switch {
	case t.waits(me), my.gated && !other.gated && !other.ended:
		return false
	case !my.turn, !slices.Contains(t.left, me): // not one of the calls that are put in order
		return true
	case other.under && !other.blocked:
		return false
	}
	return t.left[0] == me || t.cannot(1-me)
}

// waits reports whether the call of a side would wait for the transaction of the other side, since all writers do.
func (t *turns) waits(me int) bool {
	my, other := &t.sides[me], &t.sides[1-me]
	writes := func(s *side) bool {
		return slices.Contains([]string{storetest.Begin, storetest.Exec, storetest.Act}, s.kind)
	}
	return t.alone && my.open == 0 && writes(my) && (other.open > 0 || other.under && writes(other))
}

// cannot reports whether a side is known to be unable to take a turn.
func (t *turns) cannot(me int) bool {
	my := &t.sides[me]
	return my.ended || my.blocked || my.waiting && t.waits(me)
}

// passed reports whether the other side had a turn before a side had all of its own.
func (t *turns) passed(me int) bool {
	return slices.Contains(t.did[:len(t.sides[me].made)], 1-me)
}

func (t *turns) end(me int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sides[me].ended, t.sides[me].open = true, 0
	t.moved.Broadcast()
}

// effect is what a call does to another session, or what another session does to it.
type effect int

const (
	anything  effect = iota // it commits, or is not known
	none                    // it begins: both servers read what is committed when a statement starts
	committed               // it reads what is committed, without a lock
	locked                  // it locks, or writes what is not committed yet
)

func (t *turns) effect(call storetest.Call, inside bool) effect {
	switch {
	case t.alone:
		return anything
	case call.Kind == storetest.Begin:
		return none
	case call.Kind == storetest.Query && !locking.MatchString(call.SQL):
		return committed
	case inside && (call.Kind == storetest.Query || call.Kind == storetest.Exec):
		return locked
	}
	return anything
}

var locking = regexp.MustCompile(`\b(FOR|LOCK|UPDATE|INSERT|DELETE)\b`)

// matters reports whether it matters which of two calls comes first.
func matters(a, b effect) bool {
	return a != none && b != none && (a == anything || b == anything || a == locked && b == locked)
}
