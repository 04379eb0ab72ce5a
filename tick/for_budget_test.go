package tick_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The time for work ends during each call of the database in turn, in all passes of a tick --for: that is no error, nothing is
// left over, and the next tick goes on. Only the first answer has to come.
func TestForEndsWithItsBudgetAtEachCall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const budget = 3 * time.Second
		var mu sync.Mutex
		var n, last int // the call that takes until the end, and the calls so far
		var began time.Time
		var answered, early bool
		during := ""
		calls := &storetest.Calls{}
		calls.Before = func(call storetest.Call) error {
			mu.Lock()
			last++
			now := last == n
			if now {
				during, early = call.Kind+" "+call.SQL, !answered
			}
			mu.Unlock()
			if now {
				time.Sleep(time.Until(began.Add(tick.Longest(budget)))) // no longer: the call has a lock, for which what ends a transaction waits
			}
			return nil
		}
		calls.After = func(call storetest.Call) error {
			mu.Lock()
			defer mu.Unlock()
			answered = answered || strings.Contains(call.SQL, "installation")
			return nil
		}
		d := storetest.Open(t, "sqlite", store.Options{})
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{every("every 1s")}})
		ticktest.Run(t, d)
		start, base := time.Now(), d.Clock.Now()
		clock := func() time.Time { return base.Add(time.Since(start)) }
		s := ticktest.OpenBeside(t, d, "", store.Options{Clock: clock, Wrap: calls.Wrap})
		late := 0 // calls after the first answer
		for n = 1; n == 1 || during != ""; n++ {
			mu.Lock()
			last, answered, during, began = 0, false, "", time.Now()
			mu.Unlock()
			tk := ticktest.New(t, s)
			tk.Budget = budget
			r, err := tk.RunFor(t.Context(), time.Minute)
			if !early {
				late++
			}
			if refused := early && errors.Is(err, store.ErrUnreachable) && r.Decided == 0; err != nil && !refused {
				t.Errorf("call %d, %.100s: %v: %+v", n, during, err, r)
			}
			if took := time.Since(began); took > budget {
				t.Errorf("call %d, %.100s: it took %s", n, during, took)
			}
			time.Sleep(3 * time.Minute) // leases are over
		}
		if n < 40 || late < 30 {
			t.Errorf("only %d calls, %d of them after the first answer", n, late)
		}
		tk := ticktest.New(t, s)
		if r, err := tk.Run(t.Context()); err != nil || r.Succeeded == 0 {
			t.Errorf("the next tick: %v: %+v", err, r)
		}
	})
}
