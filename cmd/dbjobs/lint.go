package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// warnOf prints the warnings of `rule lint` for the rules that a change created or edited, and warns of what looks like
// a secret in their steps, or is hardly meant. What did not change causes no warning again.
func (c *cli) warnOf(m *manifest.Manifest, changes []store.Change) {
	const most = 20
	told, d := 0, m.Definitions
	warn := func(subject, format string, args ...any) {
		if told++; told <= most {
			c.tell(slog.LevelWarn, "warning: %s: %s", subject, fmt.Sprintf(format, args...))
		}
	}
	by := map[string][]store.Change{}
	for _, ch := range changes {
		key := ch.Kind + " " + ch.Subject[strings.LastIndexByte(ch.Subject, '/')+1:] // without the owner of a job
		by[key] = append(by[key], ch)
	}
	lint := func(subject, seed string, s *store.Schedule) {
		is := rules.Defaults{Zone: s.Zone, Start: time.Now(), Seed: seed, Nonexistent: s.Nonexistent, Ambiguous: s.Ambiguous}
		if cal := c.calendars[s.Calendar]; cal != nil {
			is.OnHoliday = s.OnHoliday
			is.Calendar, _ = rules.ParseCalendar(cal.Name, cal.WorkingDays, cal.Text()) // one that cannot be read is said beside it
		}
		r, err := rules.Parse(s.Rule, is)
		if err != nil {
			return // a rule that cannot be read was refused before
		}
		list, err := rules.Lint(r, rules.LintOptions{Now: time.Now()})
		if err != nil {
			return
		}
		for _, w := range list {
			warn(subject, "%s: %s", w.Code, w.Message)
		}
	}
	if len(changes) > 0 {
		for _, v := range m.Exposed(c.env) {
			warn(fmt.Sprintf("%s:%d", v.Place.File, v.Place.Line), "the variable %s looks like a secret, and its value is for all to see who may read the database; "+
				"name a secret of the host, ${secret:NAME}, in its place", v.Name)
		}
	}
	for _, subject := range m.Zoneless {
		if broughtIn(by[subject], "rule", "own") {
			warn(subject, "its cron text is read in UTC; name its zone, as in zone: Europe/Berlin, or zone: UTC if that is meant")
		}
	}
	for i := range d.Schedules {
		if s := &d.Schedules[i]; broughtIn(by["schedule "+s.Name], "rule", "zone", "nonexistent", "ambiguous", "calendar", "on_holiday") {
			lint("schedule "+s.Name, s.Name, s)
		}
	}
	for i := range d.Jobs {
		if j := &d.Jobs[i]; j.Own != nil && broughtIn(by["job "+j.Name], "own") {
			lint("job "+j.FullName(), j.FullName(), j.Own)
		}
	}
	for i := range d.Jobs {
		j := &d.Jobs[i]
		for _, s := range j.Steps {
			if what := secretIn(s.Spec); what != "" && broughtIn(by["job "+j.Name], "steps") {
				warn("job "+j.FullName(), "step %s holds what looks like %s, for all to see who may read the database; "+
					"name a secret of the host, ${secret:NAME}, in its place", s.Name, what)
			}
			if what := hardlyMeant(&s); what != "" && broughtIn(by["job "+j.Name], "steps") {
				warn("job "+j.FullName(), "step %s: %s", s.Name, what)
			}
		}
	}
	if told > most {
		c.tell(slog.LevelWarn, "warning: and %d more; to see those of one rule, use dbjobs rule lint RULE", told-most)
	}
}

// hardlyMeant is the warning of the step's executor; empty: none.
func hardlyMeant(s *store.Step) string {
	k := executor.KindOf(s.Executor)
	if k == nil || k.Warn == nil {
		return ""
	}
	return k.Warn(s.Spec)
}

// secretIn says which kind of secret a value of a step seems to be; empty: none.
func secretIn(spec json.RawMessage) string {
	var values any
	if json.Unmarshal(spec, &values) != nil {
		return ""
	}
	var look func(name string, v any) string
	look = func(name string, v any) string {
		switch v := v.(type) {
		case string:
			if secret.IsName(name) && v != "" && !strings.Contains(v, "${") {
				return "a password"
			}
			return secret.Like(v)
		case []any:
			for _, e := range v {
				if what := look(name, e); what != "" {
					return what
				}
			}
		case map[string]any:
			for name, e := range v {
				if what := look(name, e); what != "" {
					return what
				}
			}
		}
		return ""
	}
	return look("", values)
}

// broughtIn reports whether the changes create the definition, or change one of the fields.
func broughtIn(changes []store.Change, fields ...string) bool {
	return slices.ContainsFunc(changes, func(c store.Change) bool {
		return c.Action == "create" || c.Action == "change" && slices.ContainsFunc(c.Fields, func(f store.FieldChange) bool {
			top, _, _ := strings.Cut(f.Field, ".")
			return slices.Contains(fields, top)
		})
	})
}
