package tick

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// monitor sends signals about runs to the services that the heartbeats of jobs name. No run and no decision waits for the
// monitor; only the process waits for it, at the end of its passes.
//
// Crash window: after a crash between the COMMIT of a run's end and the answer of the service, the service may have heard
// nothing, or the signal that it heard counts as untold. If it heard nothing, it misses the end and raises its alarm. After a
// crash before that COMMIT, the next delivery sends its own start, and the end.
type monitor struct {
	teller  executor.Teller // nil: no executor can send signals
	ctx     context.Context
	stop    context.CancelCauseFunc
	slots   chan struct{} // bounds the signals that are sent at the same time
	pending sync.WaitGroup
	mu      sync.Mutex
	signals int // how many signals no service took
	untold  []Untold
}

// The bounds of signals.
const (
	signalPatience  = 5 * time.Second // for one signal, with all tries; also for all signals that are left at the end
	leastPatience   = 500 * time.Millisecond
	signalsTogether = 8
)

var errUntold = errors.New("no answer before the end of the pass")

// monitored runs passes, sets the alarm for what is next, and then waits for the signals of their runs that are still to be
// sent. It waits no longer than signalPatience, and only within the budget if there is one.
func (t *Tick) monitored(ctx context.Context, passes func(*Tick) (Report, error)) (Report, error) {
	if t.monitor != nil { // the monitor of an outer call is used for all its passes
		return passes(t)
	}
	with, began := *t, t.Now()
	m := &monitor{teller: t.Executors.Teller(), slots: make(chan struct{}, signalsTogether)}
	m.ctx, m.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	defer m.stop(nil)
	with.monitor = m
	r, err := passes(&with)
	err = errors.Join(err, t.arm(ctx, &r, began, err))
	patience := signalPatience
	if t.Budget > 0 {
		patience = min(max(t.Budget-t.Now().Sub(began), leastPatience), signalPatience)
	}
	if ctx.Err() != nil {
		patience = leastPatience
	}
	late := time.AfterFunc(patience, func() { m.stop(errUntold) })
	m.pending.Wait()
	late.Stop()
	r.addUntold(m.signals, m.untold)
	return r, err
}

// watch signals that a run begins. The caller calls the returned function once, when this delivery is over: it signals how
// the run ended, if it ended.
func (m *monitor) watch(t *store.Task) func() {
	to := executor.Heartbeat(t.Job.Heartbeat)
	if m == nil || m.teller == nil || to == (executor.Heartbeat{}) {
		return func() {}
	}
	news := executor.News{Signal: executor.Begins, ID: t.Run.ID, Owner: t.Job.Owner, Facts: executor.Facts(t)}
	job, end := t.Job.FullName(), make(chan store.Run, 1)
	m.pending.Go(func() {
		m.tell(job, to, news)
		var run store.Run
		select {
		case run = <-end: // the signal of the end is sent after that of the start
		case <-m.ctx.Done():
			select {
			case run = <-end:
			default: // the run did not end within the budget
				return
			}
		}
		switch run.State {
		case store.Succeeded:
			news.Signal, news.Line = executor.Success, fmt.Sprintf("job %s succeeded", job)
		case store.Failed, store.Lost:
			news.Signal, news.Line = executor.Failure, fmt.Sprintf("job %s %s: %s", job, run.State, run.Error)
		default: // cancelled, given back, to be tried again, or delivered to another process
			return
		}
		m.tell(job, to, news)
	})
	return func() { end <- t.Run }
}

func (m *monitor) tell(job string, to executor.Heartbeat, n executor.News) {
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-m.ctx.Done(): // then Tell returns the error
	}
	ctx, cancel := context.WithTimeoutCause(m.ctx, signalPatience, fmt.Errorf("no answer within %s", signalPatience))
	defer cancel()
	err := m.teller.Tell(ctx, to, n)
	if err == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.signals++; len(m.untold) < named {
		m.untold = append(m.untold, Untold{Job: job, Error: err.Error()})
	}
}
