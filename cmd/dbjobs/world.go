package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/store"
)

// world is what the database says beside the definitions of a manifest: what their next times depend on, and what to warn of.
type world struct {
	calendars map[string]*store.Calendar // of the definitions, and of the schedules that they use
	pauses    []store.Pause              // in force
	now       time.Time                  // by the clock of the database
	starved   []string                   // jobs to which the calendars of the manifest leave no time
	missing   bool                       // there is no database yet
}

// readWorld reads the clock, the calendars and the pauses. It also notes in the manifest when its schedules were made,
// if the database has them, since a rule may count from there.
func readWorld(ctx context.Context, s *store.Store, m *manifest.Manifest) (w world, err error) {
	made, err := s.Made(ctx, m.Definitions, m.Name)
	if err != nil {
		return w, err
	}
	for i := range m.Schedules {
		if is := &m.Schedules[i]; is.CreatedAt.IsZero() {
			is.CreatedAt = made[is.Name]
		}
	}
	d := m.Definitions
	d.Schedules = slices.AppendSeq(slices.Clone(d.Schedules), maps.Values(m.Shared))
	if w.calendars, err = s.KnownCalendars(ctx, d); err != nil {
		return w, err
	}
	if w.pauses, err = s.WidePauses(ctx); err != nil {
		return w, err
	}
	w.now, err = s.Now(ctx)
	return w, err
}
