package main

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// schedule makes a schedule that fires: the only time of a rule of one time may be a holiday.
func (r *random) schedule(name string, d *store.Definitions) store.Schedule {
	calendar := pick(r, d.Calendars...)
	read, err := rules.ParseCalendar(calendar.Name, calendar.WorkingDays, calendar.Text())
	if err != nil {
		r.t.Fatal(err)
	}
	s := store.Schedule{Name: name, Rule: pick(r, randomRules...)}
	r.given["schedule rule"] = true
	r.some(30, "schedule", map[string]func(){
		"zone":        func() { s.Zone = pick(r, "UTC", "Europe/Berlin", "Asia/Tokyo", "America/New_York") },
		"nonexistent": func() { s.Nonexistent = pick(r, store.NonexistentForward, store.NonexistentSkip) },
		"ambiguous":   func() { s.Ambiguous = pick(r, store.AmbiguousFirst, store.AmbiguousLast, store.AmbiguousBoth) },
		"description": func() { s.Description = r.text() },
		"calendar":    func() { s.Calendar = calendar.Name },
	})
	if s.Calendar == "" {
		return s
	}
	r.some(70, "schedule", map[string]func(){
		"on_holiday": func() { s.OnHoliday = pick(r, store.HolidaySkip, store.HolidayNext, store.HolidayPrevious) },
	})
	if _, err := rules.Parse(s.Rule, rules.Defaults{Zone: s.Zone, Seed: name + "x", Calendar: read, OnHoliday: s.OnHoliday}); err != nil {
		s.Calendar, s.OnHoliday = "", ""
	}
	return s
}

// calendar makes a calendar with days in each form.
func (r *random) calendar(name string) store.Calendar {
	c := store.Calendar{Name: name}
	day := func() time.Time { return time.Date(2026, 1, 1+r.IntN(4000), 0, 0, 0, 0, time.UTC) }
	r.some(60, "calendar", map[string]func(){
		"working_days": func() { c.WorkingDays = pick(r, "MO-FR", "SU-TH", "mo,we-fr", "SA-MO") },
		"description":  func() { c.Description = r.text() },
		"days": func() {
			for range 1 + r.IntN(40) {
				from := day()
				text := pick(r, from.Format("2006-01-02"), from.Format("2006-01-02")+".."+from.AddDate(0, 0, r.IntN(9)).Format("2006-01-02"), from.Format("01-02"))
				c.Days = append(c.Days, text+pick(r, "", " "+r.line(), " Christmas Day"))
			}
		},
	})
	return c
}

// written returns the keys of a schedule and a calendar that export writes, by the schema. They are all keys except the
// file of a calendar: export writes the days of the file instead.
func (r *random) written() (all []string) {
	type object struct {
		AnyOf []struct {
			Properties map[string]any `json:"properties"`
		} `json:"anyOf"`
	}
	var schema struct {
		Definitions map[string]object `json:"definitions"`
		Properties  struct {
			Calendars struct {
				Each object `json:"additionalProperties"`
			} `json:"calendars"`
		} `json:"properties"`
	}
	text, err := manifest.Schema()
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	for of, o := range map[string]object{"schedule": schema.Definitions["rule"], "calendar": schema.Properties.Calendars.Each} {
		before := len(all)
		for _, form := range o.AnyOf {
			for key := range form.Properties {
				all = append(all, of+" "+key)
			}
		}
		if len(all) == before {
			r.t.Fatalf("the schema has no keys of a %s", of)
		}
	}
	return slices.DeleteFunc(all, func(key string) bool { return key == "calendar file" })
}
