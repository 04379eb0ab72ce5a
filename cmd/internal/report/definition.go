package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Schedules prints the table of schedule list.
func Schedules(w io.Writer, schedules []store.ScheduleStatus) error {
	t := newTable(w, "SCHEDULE", "STATE", "NEXT", "RULE", "ZONE", "JOBS")
	for _, s := range schedules {
		state := s.State
		if s.Paused != nil && !s.Paused.Until.IsZero() {
			state += " until " + Instant(s.Paused.Until)
		}
		t.row(s.Name, state, Instant(s.Next), s.Rule, s.Zone, users(s))
	}
	return t.flush()
}

// ScheduleDetail is a schedule and what follows from its calendar.
type ScheduleDetail struct {
	store.ScheduleStatus
	// Holidays are the next times that the calendar takes out or moves, within three months.
	Holidays []rules.Holiday `json:"holidays,omitempty"`
}

// users names the first jobs that use a schedule, and counts the others.
func users(s store.ScheduleStatus) string {
	names := strings.Join(s.Users, ", ")
	if more := s.Jobs - len(s.Users); more > 0 && names != "" {
		names += fmt.Sprintf(", %d more", more)
	}
	return names
}

// Schedule prints the facts of schedule show.
func Schedule(w io.Writer, s ScheduleDetail) error {
	f := newFacts(w)
	f.add("schedule", s.Name)
	f.add("state", s.State)
	f.add("parked because", s.Parked)
	if s.Paused != nil {
		f.add("paused", Paused(*s.Paused))
	}
	f.add("description", s.Description)
	f.add("rule", s.Rule)
	f.add("zone", s.Zone)
	f.add("nonexistent", s.Nonexistent)
	f.add("ambiguous", s.Ambiguous)
	f.add("calendar", s.Calendar)
	f.add("on holiday", s.OnHoliday)
	for i := range s.Holidays {
		f.add("holiday", s.Holidays[i].Text())
	}
	f.add("next", Instant(s.Next))
	f.add("jobs", cmp.Or(users(s.ScheduleStatus), "none"))
	f.add("manifest", s.Manifest)
	f.add("created", Instant(s.CreatedAt))
	return f.flush()
}

// Pauses prints the table of pauses.
func Pauses(w io.Writer, pauses []store.Pause) error {
	t := newTable(w, "PAUSED", "SINCE", "UNTIL", "BY", "RESUMED", "BY", "REASON")
	for _, p := range pauses {
		t.row(store.Subject{Scope: p.Scope, Name: p.Subject}.String(), Instant(p.Since), Instant(p.Until), p.By, Instant(p.ResumedAt), p.ResumedBy, p.Reason)
	}
	return t.flush()
}

// Applied is what apply changed, or what it would change with --dry-run.
type Applied struct {
	Manifest string         `json:"manifest"`
	DryRun   bool           `json:"dry_run"`
	Changes  []store.Change `json:"changes"`
	// FirstRuns has the first runs of the jobs that are created. It is empty if more than 1,000 jobs are created.
	FirstRuns []FirstRun          `json:"first_runs"`
	Warnings  []DefinitionWarning `json:"warnings"`
}

// FirstRun is when a new job runs first.
type FirstRun struct {
	Job  string    `json:"job"`
	At   time.Time `json:"at,omitzero"`
	Zone string    `json:"zone,omitempty"` // of the rule that gives the time
	Why  string    `json:"why,omitempty"`  // where no time is known
}

// First returns the time in the zone of its rule, or the reason why there is none.
func First(f FirstRun) string {
	if f.At.IsZero() {
		return f.Why
	}
	return rules.Local(f.At, f.Zone) + " (" + f.Zone + ")"
}

// Changes prints a line for each changed definition, and under it a line for each changed field.
func Changes(w io.Writer, a Applied) error {
	firsts := map[string]FirstRun{}
	for _, f := range a.FirstRuns {
		firsts[f.Job] = f
	}
	marks := map[string]string{"create": "+", "change": "~", "rename": "~", "remove": "-"}
	for _, c := range a.Changes {
		if c.Action == "done" {
			if _, err := fmt.Fprintf(w, "= %s %s has finished and was removed; it is created again when its times or its steps change\n", c.Kind, Line(c.Subject)); err != nil {
				return err
			}
			continue
		}
		if c.Action == "left" {
			if _, err := fmt.Fprintln(w, left(c)); err != nil {
				return err
			}
			continue
		}
		mark := marks[c.Action]
		if mark == "" {
			mark = "*"
		}
		if _, err := fmt.Fprintf(w, "%s %s %s\n", mark, c.Kind, Line(c.Subject)); err != nil {
			return err
		}
		if first, ok := firsts[c.Subject]; ok && c.Kind == "job" && c.Action == "create" {
			if _, err := fmt.Fprintf(w, "    first run: %s\n", First(first)); err != nil {
				return err
			}
		}
		if c.Action != "change" && c.Action != "rename" {
			continue
		}
		for _, f := range c.Fields {
			if _, err := fmt.Fprintf(w, "    %s: %s -> %s\n", Line(f.Field), value(f.Before), value(f.After)); err != nil {
				return err
			}
		}
	}
	tallies := map[string]int{}
	for _, c := range a.Changes {
		tallies[c.Action]++
	}
	text := "no change"
	if len(a.Changes) > tallies["done"]+tallies["left"] {
		text = fmt.Sprintf("%d created, %d changed, %d removed", tallies["create"], tallies["change"]+tallies["rename"], tallies["remove"])
	}
	if a.DryRun {
		text += " (dry run: nothing was written)"
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// left says that a definition stays although its file does not name it any more, and what removes it.
func left(c store.Change) string {
	subject := Line(c.Subject)
	if c.Reason != "" {
		text := fmt.Sprintf("= %s %s is not in this file, and stays: %s", c.Kind, subject, c.Reason)
		if c.Kind == "job" { // anything else is in use
			text += fmt.Sprintf("; `dbjobs job remove %s` removes it", Line(store.Argument(c.Subject)))
		}
		return text
	}
	return fmt.Sprintf("= %s %s is no longer in this file, but stays; --prune removes it", c.Kind, subject)
}

// History prints the table of a change log.
func History(w io.Writer, list []store.Change) error {
	t := newTable(w, "WHEN", "WHO", "ACTION", "REASON", "WHAT")
	for _, c := range list {
		t.row(Instant(c.At), c.By, c.Action, c.Reason, what(c))
	}
	return t.flush()
}

// what names the fields that a change changed. A change that created or removed something has all
// fields; only --json prints those.
func what(c store.Change) string {
	var parts []string
	for _, f := range c.Fields {
		parts = append(parts, fmt.Sprintf("%s: %s -> %s", f.Field, value(f.Before), value(f.After)))
	}
	if c.Before == nil && c.Action != "create" && string(c.After) != "{}" {
		parts = append(parts, string(c.After))
	}
	return strings.Join(parts, ", ")
}

func value(s string) string {
	if s == "" {
		return "none"
	}
	return Line(s)
}
