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

	mu       sync.Mutex
	services map[string]*service // by executor.Heartbeat.Service
	signals  int                 // how many signals no service took
	untold   []Untold
}

// service is what the monitor knows of one service. A service that does not answer takes no slots from the others, and its
// signals do not pile up.
type service struct {
	slots  chan struct{} // bounds its signals that are sent at the same time
	one    chan struct{} // the same while it is silent: one signal at a time asks whether it answers again
	took   int           // how many signals it took
	silent bool          // it did not answer
}

// The bounds of signals.
const (
	signalPatience = 5 * time.Second // for one signal, with all tries; also for all signals that are left at the end
	leastPatience  = 500 * time.Millisecond
	signalAge      = 30 * time.Second // how long a signal waits for a slot: a service takes a signal for one of now

	togetherOfService = 32
	togetherOfAll     = 128 // each takes a connection
)

var (
	errUntold = errors.New("no answer before the end of the pass")
	errAged   = fmt.Errorf("it was not sent within %s, since too many other signals were before it, or had no answer", signalAge)
)

// monitored runs passes, sets the alarm for what is next, and then waits for the signals of their runs that are still to be
// sent. It waits no longer than signalPatience, and only within the budget if there is one.
func (t *Tick) monitored(ctx context.Context, passes func(*Tick) (Report, error)) (Report, error) {
	if t.monitor != nil { // the monitor of an outer call is used for all its passes
		return passes(t)
	}
	with, began := *t, t.Now()
	m := newMonitor(ctx, t.Executors.Teller())
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
	m.wait(patience)
	r.addUntold(m.signals, m.untold)
	return r, err
}

func newMonitor(ctx context.Context, teller executor.Teller) *monitor {
	m := &monitor{teller: teller, slots: make(chan struct{}, togetherOfAll), services: map[string]*service{}}
	m.ctx, m.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	return m
}

// wait waits for the signals that are still to be sent. Those that are left after the patience are untold.
func (m *monitor) wait(patience time.Duration) {
	late := time.AfterFunc(patience, func() { m.stop(errUntold) })
	defer late.Stop()
	m.pending.Wait()
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

// tell sends a signal when its turn comes, or notes why no service took it.
func (m *monitor) tell(job string, to executor.Heartbeat, n executor.News) {
	name := to.Service(n.Signal)
	if name == "" {
		return
	}
	s := m.service(name)
	ctx, release := m.turn(s)
	defer release()
	m.mu.Lock()
	took := s.took
	m.mu.Unlock()
	within, cancel := context.WithTimeoutCause(ctx, signalPatience, fmt.Errorf("no answer within %s", signalPatience))
	defer cancel()
	err := m.teller.Tell(within, to, n)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		s.took++
		s.silent = false
		return
	}
	if within.Err() != nil && ctx.Err() == nil && s.took == took {
		s.silent = true // none of the signals that were sent in the meantime got an answer
	}
	if m.signals++; len(m.untold) < named {
		m.untold = append(m.untold, Untold{Job: job, Error: err.Error()})
	}
}

func (m *monitor) service(name string) *service {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.services[name] == nil {
		m.services[name] = &service{slots: make(chan struct{}, togetherOfService), one: make(chan struct{}, 1)}
	}
	return m.services[name]
}

// turn waits until a signal may be sent, and returns the context for it. If it may not be sent, the context has ended, and its
// cause says why: so Tell says it, together with the server.
func (m *monitor) turn(s *service) (ctx context.Context, release func()) {
	ctx, end := context.WithCancelCause(m.ctx)
	aged := time.AfterFunc(signalAge, func() { end(errAged) })
	defer aged.Stop()
	var has []chan struct{}
	take := func(slots chan struct{}, needed func() bool) {
		select {
		case slots <- struct{}{}:
			if has = append(has, slots); !needed() {
				<-slots
				has = has[:len(has)-1]
			}
		case <-ctx.Done():
		}
	}
	always, silent := func() bool { return true }, func() bool { return m.isSilent(s) }
	take(s.slots, always) // who waits for its service has none of the slots for all
	if silent() {
		take(s.one, silent) // the service may answer again meanwhile
	}
	take(m.slots, always)
	return ctx, func() {
		end(nil)
		for _, slots := range has {
			<-slots
		}
	}
}

func (m *monitor) isSilent(s *service) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return s.silent
}
