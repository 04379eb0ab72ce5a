package tick_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The last run may end while an alarm is set for what is due meanwhile. What sets it is not cut off: it may be a program that notes
// the alarm before it asks the platform for it. But it does not hold up the pass for long.
func TestAlarmThatIsSetWhileTheLastRunEnds(t *testing.T) {
	for name, takes := range map[string]time.Duration{"soon": time.Second, "never": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { // time passes only where all wait
				d := storetest.Open(t, "sqlite", store.Options{})
				tk, _ := waking(t, d)
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: &store.Schedule{Rule: "every 1h"}, Steps: []store.Step{ticktest.Call("")}}}})
				ticktest.Pass(t, tk)
				d.Clock.Set(ticktest.Morning(9, 0))
				b := &slowBell{begun: make(chan bool), takes: takes}
				tk.Alarm = b
				tk.Executors["doing"] = ticktest.Doing(func(context.Context, executor.Request) (executor.Result, error) {
					<-b.begun
					return executor.Result{}, nil
				})
				began := time.Now()
				r := ticktest.Pass(t, tk)
				if cut := b.cut; r.Succeeded != 1 || cut != (name == "never") {
					t.Errorf("the alarm was cut off: %t; %+v", cut, r)
				}
				if took := time.Since(began); took > 8*time.Second {
					t.Errorf("the pass took %s: the alarm is set after 6s", took)
				}
			})
		})
	}
}

// slowBell takes a while for the first alarm.
type slowBell struct {
	begun chan bool
	takes time.Duration
	asked int
	cut   bool
}

func (b *slowBell) Set(ctx context.Context, at time.Time) (time.Time, error) {
	if b.asked++; b.asked > 1 {
		return at, nil
	}
	close(b.begun)
	select {
	case <-time.After(b.takes):
	case <-ctx.Done():
		b.cut = true
	}
	return at, ctx.Err()
}

// A platform that does not answer while a run executes is asked again before the run ends, and somebody learns of it.
func TestAlarmThatIsNotAnsweredWhileARunExecutes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := storetest.Open(t, "sqlite", store.Options{})
		tk, _ := waking(t, d)
		var log lockedText
		tk.Log = slog.New(slog.NewTextHandler(&log, nil))
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: &store.Schedule{Rule: "every 1h"}, Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Pass(t, tk)
		d.Clock.Set(ticktest.Morning(9, 0))
		b := &slowBell{begun: make(chan bool), takes: time.Hour}
		tk.Alarm = b
		asked := 0
		tk.Executors["doing"] = ticktest.Doing(func(context.Context, executor.Request) (executor.Result, error) {
			time.Sleep(time.Minute)
			asked = b.asked
			return executor.Result{}, nil
		})
		if r := ticktest.Pass(t, tk); r.Succeeded != 1 || asked != 2 {
			t.Errorf("asked %d times while the run executed, want twice; %+v", asked, r)
		}
		if !strings.Contains(log.String(), "no alarm could be set while runs execute") {
			t.Errorf("nothing says so:\n%s", log.String())
		}
	})
}

// lockedText is a text that several goroutines write.
type lockedText struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(b)
}
