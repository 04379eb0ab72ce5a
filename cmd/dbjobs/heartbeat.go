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

// heartbeatPatience is how long the heartbeat of a pass may keep its process, and heartbeatLeast how long it may where the
// budget of the pass is used up.
const (
	heartbeatPatience = 5 * time.Second
	heartbeatLeast    = time.Second
)

// heartbeat tells the service that the host's settings name about one pass. The nil heartbeat tells nothing.
type heartbeat struct {
	to    executor.Heartbeat
	http  *executor.HTTP
	facts map[string]any
	begun chan error // what became of the start
	stop  context.CancelCauseFunc
}

// beginHeartbeat says that the pass begins, beside the pass, which waits for nothing. A dry run is no pass, and the success
// of a worker would hide that no tick comes.
func (c *cli) beginHeartbeat(ctx context.Context, f *tickFlags) (*heartbeat, error) {
	set, err := c.host()
	if err != nil || set.Heartbeat == nil || !f.monitored || f.dryRun {
		return nil, err
	}
	h := &heartbeat{begun: make(chan error, 1), facts: map[string]any{"id": store.NewRunID(c.began, 0), "name": f.name}}
	to, leaves, broken := set.Monitor(c.secrets)
	h.to, h.http = to, executor.NewHTTP(leaves)
	ctx, h.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	go func() {
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

// endHeartbeat says how the pass ended, after its beginning was told, and returns why a signal was not taken. It takes no longer than
// most. line says what a pass did that has not failed.
//
// A pass has failed if its exit code is neither 0 nor 3: a job that failed is no failure of the pass. One that a signal ends
// sends no end: those who stop it know, and the service misses the next one if there is none.
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
	began := <-h.begun
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

// patience is how long the heartbeat may be waited for at the end of a pass: within its budget, as far as there is time left.
func (f *tickFlags) patience(spent time.Duration) time.Duration {
	if f.whole() == 0 {
		return heartbeatPatience
	}
	return min(max(left(f.whole(), spent), heartbeatLeast), heartbeatPatience)
}

// tellUntold warns of a signal that no service took.
func (c *cli) tellUntold(u tick.Untold) {
	c.tell(slog.LevelWarn, "%s: %s", heartbeatOf(u.Job), u.Error)
}

// heartbeatOf begins the message about a signal that no service took.
func heartbeatOf(job string) string {
	if job == "" {
		return "the heartbeat of this pass was not told"
	}
	return "job " + job + ": its heartbeat was not told"
}
