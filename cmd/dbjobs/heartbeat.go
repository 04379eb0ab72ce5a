package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// heartbeatPatience is how long the process may wait for the heartbeat of its pass. heartbeatLeast is how long it
// may wait if the budget of the pass is used up.
const (
	heartbeatPatience = 5 * time.Second
	heartbeatLeast    = time.Second
)

// heartbeat signals one pass to the service that the host's settings name. The nil heartbeat signals nothing.
type heartbeat struct {
	to    executor.Heartbeat
	http  *executor.HTTP
	facts map[string]any
	begun chan error // the result of the start signal; before it comes, to and http are not known
	stop  context.CancelCauseFunc
}

// beginHeartbeat signals that the pass begins. It does so in parallel to the pass, which waits for nothing. A dry
// run is no pass. The success of a worker would hide that no tick comes.
func (c *cli) beginHeartbeat(ctx context.Context, f *tickFlags) (*heartbeat, error) {
	set, err := c.host()
	if err != nil || set.Heartbeat == nil || !f.monitored || f.dryRun {
		return nil, err
	}
	h := &heartbeat{begun: make(chan error, 1), facts: map[string]any{"id": store.NewRunID(c.began, 0), "name": f.name}}
	ctx, h.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	go func() {
		to, allowed, broken := set.Monitor(ctx, c.secrets)
		h.to, h.http = to, executor.NewHTTP(allowed)
		if broken == nil {
			broken = h.tell(ctx, executor.Begins, "")
		}
		h.begun <- broken
	}()
	return h, nil
}

func (h *heartbeat) tell(ctx context.Context, s executor.Signal, line string) error {
	return h.http.Tell(ctx, h.to, executor.News{Signal: s, ID: h.facts["id"].(string), Line: line, Facts: h.facts})
}

// endHeartbeat signals how the pass ended, after the signal of its beginning was sent. It returns why the service
// did not take a signal. It takes no longer than most. line describes a pass that has not failed.
//
// A pass has failed if its exit code is neither 0 nor 3: a job that failed is no failure of the pass. A pass that
// a signal of the system stops sends no end: the person who stops it knows, and if no other pass follows, the
// service misses the next signal.
func (c *cli) endHeartbeat(ctx context.Context, h *heartbeat, most time.Duration, line string, failure error) error {
	if h == nil {
		return nil
	}
	defer h.stop(nil)
	if failure != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	late := fmt.Errorf("no answer within %s", most)
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), most, late)
	defer cancel()
	half := time.AfterFunc(most/2, func() { h.stop(late) }) // a start that nobody takes leaves time for the end
	defer half.Stop()
	var began error
	select {
	case began = <-h.begun:
	case <-ctx.Done(): // the address, or a secret in it, is in a file on a file server that is away
		return context.Cause(ctx)
	}
	defer h.http.Close()
	signal := executor.Success
	if code := exitCode(context.Background(), failure); code != exitDone && code != exitJobFailed {
		signal, line = executor.Failure, "the pass failed"
		if lines := c.explain(code, failure); len(lines) > 0 {
			line = lines[0]
		}
	}
	if err := h.tell(ctx, signal, line); err != nil {
		return err
	}
	return began
}

// patience returns how long the end of a pass may wait for the heartbeat: within its budget, as far as there is
// time left.
func (f *tickFlags) patience(spent time.Duration) time.Duration {
	if f.whole() == 0 {
		return heartbeatPatience
	}
	return min(max(left(f.whole(), spent), heartbeatLeast), heartbeatPatience)
}

// tellUntold logs a warning about a signal that the service did not take.
func (c *cli) tellUntold(u tick.Untold) {
	c.tell(slog.LevelWarn, "%s: %s", heartbeatOf(u.Job), u.Error)
}

// heartbeatOf returns the beginning of the message about a signal that the service did not take.
func heartbeatOf(job string) string {
	if job == "" {
		return "the heartbeat signal of this pass was not delivered"
	}
	return "job " + job + ": its heartbeat signal was not delivered"
}
