package store

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// SeeCalendars marks the schedules of calendars that plain SQL has edited: they become stale, and the following
// decisions plan their jobs with the new days. A calendar or schedule that another session has locked is left to a
// later pass. Where such a lock shows only as a statement that waits, waits bounds how often that may happen. It
// returns the names of the calendars that were left because of that.
//
// Crash window: before COMMIT a calendar stays unmarked, for the next pass.
func (s *Store) SeeCalendars(ctx context.Context, waits int) (left []string, err error) {
	var stale []string
	if err := s.db.Query(ctx, "stale_calendars", engine.Args{"window": window}, engine.Column(&stale)); err != nil {
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
		for i := range stale { // none: another pass has seen it, or a session is editing it
			if err := execAll(ctx, tx, engine.Args{"name": name, "version": stale[i].Version()}, "see_calendar", "mark_calendar"); err != nil {
				return err
			}
		}
		return nil
	})
}

// unseenDays is the end of a version that no schedule ever knows.
const unseenDays = " edited"

// daysRead adds the version of the days that were read to the input from which a changed rule is planned. A schedule
// may know another version: SQL has edited the calendar since SeeCalendars looked, or has moved the schedule to
// another calendar. With the version that the schedule knows, a plan made from other days would later count as made
// from the schedule's days, once the calendar has them again. There is a second case: a command has given the
// schedule the version of an edit that no pass has seen. Then SQL may take the edit back, which leaves no mark.
func (r *Rule) daysRead() {
	if r.Changed() {
		r.withDays()
	}
}

func (r *Rule) withDays() {
	if r.Calendar.Fault != "" {
		return
	}
	at := strings.LastIndex(r.NewInput, "\x1f") + 1 // the text after it is calendar_version
	read := r.NewInput[:at] + r.Calendar.Version()
	if r.Calendar.stale {
		read += unseenDays
	}
	if read != r.NewInput {
		r.NewInput, r.otherDays = read, true
	}
}

// Reread reports whether a changed rule was planned from the same text with the same days: the only change is whether
// its schedule knows those days.
func (r *Rule) Reread() bool {
	return r.Linked && r.Input != "" && strings.TrimSuffix(r.Input, unseenDays) == strings.TrimSuffix(r.NewInput, unseenDays)
}

// SameRule reports whether a changed rule was planned from the same text, zone and policies: its calendar may have changed.
func (r *Rule) SameRule() bool {
	const fields = 4 // of plan_input, before those of the calendar
	was, is := strings.SplitN(r.Input, "\x1f", fields+1), strings.SplitN(r.NewInput, "\x1f", fields+1)
	return min(len(was), len(is)) >= fields && slices.Equal(was[:fields], is[:fields])
}

// otherDays records a job that is planned with days that its schedule does not know.
func (w *writer) otherDays(job int64, r *Rule) {
	if !r.otherDays {
		return
	}
	if w.unseen == nil {
		w.unseen = map[string][]int64{}
	}
	w.unseen[r.Calendar.Name] = append(w.unseen[r.Calendar.Name], job)
}

// seeAgain makes the next pass mark the schedules of these calendars with the days that the calendars have by then,
// even if they are the old days. If a session is editing a calendar, its jobs stay unmarked instead, and the next
// pass decides for them again.
//
// Crash window: the mark commits with the plans or not at all, like them.
func (w *writer) seeAgain(ctx context.Context) error {
	if len(w.unseen) == 0 {
		return nil
	}
	var free []string
	err := w.tx.Query(ctx, "lock_calendars", engine.Args{"ids": slices.Sorted(maps.Keys(w.unseen))}, engine.Column(&free))
	for _, name := range free {
		delete(w.unseen, name)
	}
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
