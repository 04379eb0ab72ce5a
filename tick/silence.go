package tick

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// raiseSilence asks for a run of this host's hook if the trigger was silent, and the host has a hook. The event is late, with the
// trigger in the place of a job. Its cause is the last pass before the silence, so that passes that
// compete, or that follow a crash, raise the event only once.
//
// Crash window: until this pass is recorded, the next pass finds the same silence. So the pass is not
// recorded as long as the event could not be raised, also where a pass is refused before it comes to that.
func (p *pass) raiseSilence(ctx context.Context) error {
	if !p.unraised || p.t.DryRun {
		return nil
	}
	within, cancel := p.budget(ctx)
	defer cancel()
	since, now, name := p.report.SilentSince, p.probe.Now, p.t.Name
	length := now.Sub(since)
	unheard, err := p.t.Store.Raise(within, store.Event{
		Kind: store.EventLate, Hook: p.decider.On.Late, Cause: silenceCause(name, since), At: now,
		Trigger: name, Since: since, Seconds: int64(length / time.Second),
		Error: fmt.Sprintf("the trigger %q was silent for %s, since %s: it did not come, or did not reach the database", name, length.Round(time.Second), since.UTC().Format(time.RFC3339)),
	})
	switch {
	case err != nil && p.t.Store.Locked(err) && !p.t.Store.Engine().OneWriter:
		p.report.Unrecorded = "the silence of the trigger is not raised yet: " + err.Error()
		return nil
	case err != nil:
		err = fmt.Errorf("raise the silence of the trigger: %w", err)
		if p.fileLocked(err) {
			err = p.cutShort(ctx, within, err)
		}
		return err
	}
	p.unraised = false
	p.report.addUnheard(len(unheard), unheard)
	p.probe.Need[store.RunWakes] = true // of the hook, in this pass
	return nil
}

// causeName is how many bytes of the name of a trigger are used in a key.
const causeName = 100

// silenceCause is unique among the silences of all triggers.
func silenceCause(trigger string, since time.Time) string {
	head := strings.ToValidUTF8(trigger[:min(len(trigger), causeName)], "")
	return since.UTC().Format(time.RFC3339Nano) + ":" + head
}
