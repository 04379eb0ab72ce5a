package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"

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

// unseenDays is what a version ends with that no schedule ever knows.
const unseenDays = " edited"

// daysRead makes the version of the days that were read part of what a changed rule is planned from. A
// schedule may know another one: SQL has edited the calendar since SeeCalendars looked, or has moved the
// schedule to another calendar. With the version that the schedule knows, a plan of other days would
// count as one of those days, once the calendar has them again. And where a command has given the
// schedule the version of an edit that no pass has seen, SQL may take the edit back, and leaves no mark.
func (r *Rule) daysRead() {
	if r.Changed() {
		r.withDays()
	}
}

func (r *Rule) withDays() {
	if r.Calendar.Fault != "" {
		return
	}
	at := strings.LastIndex(r.NewInput, "\x1f") + 1 // behind it is calendar_version
	read := r.NewInput[:at] + r.Calendar.Version()
	if r.Calendar.stale {
		read += unseenDays
	}
	if read != r.NewInput {
		r.NewInput, r.otherDays = read, true
	}
}

// Reread reports whether a changed rule was planned from the same text with the same days: all that is new is whether its
// schedule knows them.
func (r *Rule) Reread() bool {
	return r.Linked && r.Input != "" && strings.TrimSuffix(r.Input, unseenDays) == strings.TrimSuffix(r.NewInput, unseenDays)
}

// otherDays notes a job that is planned with days which its schedule does not know.
func (w *writer) otherDays(job int64, r *Rule) {
	if !r.otherDays {
		return
	}
	if w.unseen == nil {
		w.unseen = map[string][]int64{}
	}
	w.unseen[r.Calendar.Name] = append(w.unseen[r.Calendar.Name], job)
}

// seeAgain makes the next pass tell the schedules of these calendars which days they have: whatever the
// calendars have by then, also the days of before. Where somebody is editing a calendar, its jobs stay
// unmarked instead, and the next pass decides for them again.
//
// Crash window: the mark is written with the plans, or not at all, as they are.
func (w *writer) seeAgain(ctx context.Context) error {
	if len(w.unseen) == 0 {
		return nil
	}
	var free []string
	err := w.tx.Query(ctx, "lock_calendars", engine.Args{"ids": slices.Sorted(maps.Keys(w.unseen))}, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		free = append(free, name)
		delete(w.unseen, name)
		return err
	})
	for _, jobs := range w.unseen {
		for _, id := range jobs {
			delete(w.planned, id)
		}
	}
	if err != nil || len(free) == 0 {
		return err
	}
	_, err = w.tx.Exec(ctx, "unmark_calendars", engine.Args{"ids": free})
	return err
}
