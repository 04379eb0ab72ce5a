package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// What a schedule with a calendar does with a time that falls on a holiday.
const (
	HolidaySkip     = "skip"     // the time does not exist
	HolidayNext     = "next"     // the time moves to the next working day
	HolidayPrevious = "previous" // the time moves to the last working day before
)

// Calendar is a named set of days on which the schedules that name it do nothing. Package rules reads its texts. The
// days are one text in the database, not rows: so each edit by plain SQL leaves a mark, also one that removes a day.
type Calendar struct {
	Name        string   `json:"name"`
	WorkingDays string   `json:"working_days,omitempty"` // weekdays, such as MO-FR; empty: all of them
	Days        []string `json:"days,omitempty"`         // "2026-12-25 Christmas Day", "2026-12-24..2026-12-31", "12-25"
	Description string   `json:"description,omitempty"`
	Manifest    string   `json:"manifest,omitempty"` // the manifest that owns it
	Schedules   int      `json:"schedules"`          // how many schedules use it, including rules of jobs

	Fault string `json:"unreadable,omitempty"` // which columns of its row cannot be read
	stale bool   // SQL has edited its days, and its schedules do not know them yet
}

// Text returns the days as package rules reads them.
func (c *Calendar) Text() string { return strings.Join(c.Days, "\n") }

// Normalize gives the days the form in which the database gives them back, so that equal calendars are equal structs.
func (c *Calendar) Normalize() { c.Days = daysOf(c.Text()) }

// daysOf returns the lines of the text of a calendar's days.
func daysOf(text string) (days []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			days = append(days, line)
		}
	}
	return days
}

// Version returns a text that differs for calendars with different days.
func (c *Calendar) Version() string {
	sum := sha256.Sum256([]byte(c.WorkingDays + "\x1f" + c.Text()))
	return hex.EncodeToString(sum[:8])
}

// maxCalendar bounds the text of a calendar's days.
const maxCalendar = 256 << 10

// Validate refuses values that not every engine can store. It does not read the days.
func (c *Calendar) Validate() error {
	var days error
	if n := len(c.Text()); n > maxCalendar {
		days = fmt.Errorf("have %d bytes; at most %d are allowed", n, maxCalendar)
	} else if n > 0 {
		days = notEmpty(c.Text())
	}
	return firstError("calendar "+c.Name, check{"name", checkName(c.Name)}, check{"working_days", shortText(c.WorkingDays, maxName)}, check{"days", days},
		check{"description", checkDescription(c.Description)})
}

// readCalendar calls take for each calendar that a statement reads.
func readCalendar(ctx context.Context, q engine.Runner, statement string, a engine.Args, take func(Calendar)) error {
	var c Calendar
	var days string
	rd := engine.Reads(&c.Name, &c.WorkingDays, &days, &c.Description, engine.Nullable(&c.Manifest), &c.stale)
	return q.Query(ctx, statement, a, rd.Each(func(fault string) {
		c.Days, c.Fault = daysOf(days), fault
		take(c)
		c, days = Calendar{}, ""
	}))
}

func calendarsNamed(ctx context.Context, q engine.Runner, names []string) (map[string]*Calendar, error) {
	found := map[string]*Calendar{}
	for part := range slices.Chunk(names, page) {
		if err := readCalendar(ctx, q, "calendars_named", engine.Args{"ids": part}, func(c Calendar) { found[c.Name] = &c }); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Calendars lists the calendars by name.
func (s *Store) Calendars(ctx context.Context) (list []Calendar, err error) {
	if err := readCalendar(ctx, s.db, "calendars", engine.Args{}, func(c Calendar) { list = append(list, c) }); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(x, y Calendar) int { return strings.Compare(x.Name, y.Name) }) // by bytes, whatever order the database has
	return list, s.countCalendarUsers(ctx, list)
}

func (s *Store) countCalendarUsers(ctx context.Context, list []Calendar) error {
	users := map[string]int{}
	var name string
	var n int
	err := s.db.Query(ctx, "calendar_users", engine.Args{}, engine.Scan(func() { users[name] = n }, &name, &n))
	for i := range list {
		list[i].Schedules = users[list[i].Name]
	}
	return err
}

// Calendar finds a calendar by name.
func (s *Store) Calendar(ctx context.Context, name string) (Calendar, error) {
	c, err := s.findCalendar(ctx, s.db, name)
	if err != nil {
		return Calendar{}, err
	}
	list := []Calendar{*c}
	err = s.countCalendarUsers(ctx, list)
	return list[0], err
}

func (s *Store) findCalendar(ctx context.Context, q engine.Runner, name string) (*Calendar, error) {
	known, err := calendarsNamed(ctx, q, []string{name})
	c := known[name]
	if err == nil && c == nil {
		err = missing(KindCalendar, name)
	}
	return c, err
}

// KnownCalendars returns the calendars that these definitions name, by name. A calendar of the definitions comes
// before one of the database. It sends no statement if the definitions name none.
func (s *Store) KnownCalendars(ctx context.Context, d Definitions) (map[string]*Calendar, error) {
	names := d.calendarNames()
	if len(names) == 0 {
		return nil, nil
	}
	known, err := calendarsNamed(ctx, s.db, names)
	if err != nil {
		return nil, err
	}
	for i := range d.Calendars {
		known[d.Calendars[i].Name] = &d.Calendars[i]
	}
	return known, nil
}

// calendarNames returns the names of the calendars that the definitions have or name.
func (d *Definitions) calendarNames() []string {
	names := map[string]bool{}
	for i := range d.Calendars {
		names[d.Calendars[i].Name] = true
	}
	for i := range d.Schedules {
		names[d.Schedules[i].Calendar] = true
	}
	for i := range d.Jobs {
		if own := d.Jobs[i].Own; own != nil {
			names[own.Calendar] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// readCalendars reads the calendars that the rules name, if they name any, by one statement.
func (s *Store) readCalendars(ctx context.Context, q engine.Runner, ids []int64, byJob map[int64]*Snapshot) error {
	names := map[string]bool{}
	for _, id := range ids {
		for i := range byJob[id].Rules {
			if name := byJob[id].Rules[i].Schedule.Calendar; name != "" {
				names[name] = true
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	known, err := calendarsNamed(ctx, q, slices.Sorted(maps.Keys(names)))
	if err != nil {
		return err
	}
	for _, id := range ids {
		for i := range byJob[id].Rules {
			r := &byJob[id].Rules[i]
			if r.Calendar = known[r.Schedule.Calendar]; r.Calendar != nil {
				byJob[id].fault("calendar "+r.Calendar.Name, r.Calendar.Fault)
				r.daysRead()
			}
		}
	}
	return nil
}

// allCalendars applies the calendars of the definitions, and reads those that their schedules name.
func (a *applier) allCalendars(ctx context.Context, d Definitions) (err error) {
	names := d.calendarNames()
	if len(names) == 0 {
		return nil
	}
	if a.calendars, err = calendarsNamed(ctx, a.tx, names); err != nil {
		return err
	}
	for i := range d.Calendars {
		if err := a.calendar(ctx, d.Calendars[i]); err != nil {
			return err
		}
	}
	return nil
}

// observes refuses a calendar that does not exist, and a rule that has no time from when its schedule was made, be it
// that the calendar leaves it none.
func (a *applier) observes(subject string, j Job, c Schedule) error {
	calendar := a.calendars[c.Calendar]
	if c.Calendar != "" && calendar == nil {
		return &FieldError{subject, "calendar", fmt.Sprintf("there is no calendar %q; `dbjobs calendar list` shows them", c.Calendar)}
	}
	if a.o.First == nil || calendar == nil && !c.Past {
		return nil
	}
	if _, err := a.o.First(j, c, calendar, a.now); err != nil {
		return &FieldError{subject, "rule", err.Error()}
	}
	return nil
}

// versionOf returns the version of a calendar; empty if there is no calendar.
func (a *applier) versionOf(name string) string {
	if c := a.calendars[name]; c != nil {
		return c.Version()
	}
	return ""
}

func (a *applier) calendar(ctx context.Context, c Calendar) error {
	c.Normalize()
	if err := c.Validate(); err != nil {
		return err
	}
	c.Manifest, c.Schedules = a.o.Manifest, 0
	old := Calendar{}
	there, ok := a.calendars[c.Name]
	if ok {
		old = *there
	}
	args := engine.Args{"now": a.now, "name": c.Name, "working_days": c.WorkingDays, "days": c.Text(), "description": c.Description,
		"manifest": engine.Null(c.Manifest), "version": c.Version()}
	err := a.mayTake("calendar "+c.Name, old.Manifest)
	switch {
	case err != nil && !a.o.CreateOnly:
		a.refuse(err)
		return nil
	case ok && a.o.CreateOnly:
		return fmt.Errorf("calendar %s: %w", c.Name, ErrExists)
	case ok && same(old, c):
		return nil
	case ok:
		a.calendars[c.Name] = &c
		statements := []string{"update_calendar"}
		if old.Version() != c.Version() {
			statements = append(statements, "date_calendar", "see_calendar", "mark_calendar")
		}
		if err := a.run(ctx, args, statements...); err != nil {
			return err
		}
		return a.record("calendar", c.Name, "change", 0, old, c)
	}
	a.calendars[c.Name] = &c
	if err := a.run(ctx, args, "insert_calendar", "see_calendar", "mark_calendar"); err != nil { // schedules may name a calendar that was deleted
		return taken("calendar "+c.Name, err)
	}
	return a.record("calendar", c.Name, "create", 0, nil, c)
}

// AlterCalendar makes a calendar, or changes it in place, as AlterJob does for a job. edit makes the new calendar from
// the calendar as it is at that moment; from nil, if there is none. The name and the manifest stay the same.
func (s *Store) AlterCalendar(ctx context.Context, name string, o AlterOptions, edit func(*Calendar) (Calendar, error)) ([]Change, error) {
	return s.inTurn(ctx, o.apply(), func(a *applier) error {
		known, err := calendarsNamed(ctx, a.tx, legible([]string{name}))
		if err != nil {
			return err
		}
		old := known[name]
		if old != nil {
			a.o.Manifest = old.Manifest
		}
		c, err := edit(old)
		if err != nil {
			return err
		}
		c.Name = name
		return a.allCalendars(ctx, Definitions{Calendars: []Calendar{c}})
	})
}

// leaveCalendars is leave for calendars. Those that have a reason stay.
func (a *applier) leaveCalendars(ctx context.Context, named []Calendar, reasons map[string]string) error {
	var gone []Calendar
	err := readCalendar(ctx, a.tx, "calendars", engine.Args{}, func(c Calendar) {
		if c.Manifest == a.o.Manifest && !slices.ContainsFunc(named, func(n Calendar) bool { return n.Name == c.Name }) {
			gone = append(gone, c)
		}
	})
	if err != nil {
		return err
	}
	slices.SortFunc(gone, func(x, y Calendar) int { return strings.Compare(x.Name, y.Name) })
	for _, c := range gone {
		if reasons[c.Name] != "" {
			a.left("calendar", c.Name, reasons[c.Name])
			continue
		}
		if !a.o.Prune {
			a.left("calendar", c.Name, "")
			continue
		}
		if err := a.removeCalendar(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// RemoveCalendar removes a calendar that no schedule names.
func (s *Store) RemoveCalendar(ctx context.Context, name string, who Author) error {
	_, err := s.inTurn(ctx, ApplyOptions{Author: who}, func(a *applier) error {
		c, err := s.findCalendar(ctx, a.tx, name)
		if err != nil {
			return err
		}
		return a.removeCalendar(ctx, *c)
	})
	return err
}
