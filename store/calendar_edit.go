package store

import (
	"context"
	"database/sql"

	"github.com/dbjobs/dbjobs/store/engine"
)

// SeeCalendars tells the schedules of calendars that plain SQL has edited: they become stale, and the
// decisions that follow plan their jobs with the new days. What another session has locked is left to a
// later pass; where that shows only as a statement that waits, waits is how often. It returns the names of
// calendars that were left because of that.
//
// Crash window: before a COMMIT its calendar stays unmarked, for the next pass.
func (s *Store) SeeCalendars(ctx context.Context, waits int) (left []string, err error) {
	var stale []string
	err = s.db.Query(ctx, "stale_calendars", engine.Args{"window": window}, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		stale = append(stale, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, name := range stale {
		if len(left) >= max(1, waits) {
			break
		}
		err := s.db.RetryFor(ctx, 1, engine.Attempts, func() error { return s.seeCalendar(ctx, name) })
		if s.Locked(err) {
			left = append(left, name)
		} else if err != nil {
			return left, err
		}
	}
	return left, nil
}

func (s *Store) seeCalendar(ctx context.Context, name string) error {
	return s.db.TryTx(ctx, func(tx *engine.Tx) error {
		var stale []Calendar
		if err := readCalendar(ctx, tx, "lock_calendar", engine.Args{"name": name}, func(c Calendar) { stale = append(stale, c) }); err != nil {
			return err
		}
		for i := range stale { // none: another pass has seen it, or somebody edits it
			a := engine.Args{"name": name, "version": stale[i].Version()}
			if _, err := tx.Exec(ctx, "see_calendar", a); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "mark_calendar", a); err != nil {
				return err
			}
		}
		return nil
	})
}
