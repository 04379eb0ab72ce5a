package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// readGroups reads the caps that jobs share. Each is a number, or a mapping with that number.
func (f *file) readGroups(n *yaml.Node) {
	if n == nil {
		return
	}
	for _, p := range f.pairs(n, "groups", "a mapping of groups by name") {
		g := store.Group{Name: p.key.Value}
		path := join("groups", g.Name)
		if !f.once(p.key, path) {
			continue
		}
		before := len(f.problems)
		if v, ok := f.enter(p.value, path); ok && v.Kind == yaml.MappingNode {
			f.mapping(v, path, []field{{"max_running", number(&g.MaxRunning, 1, math.MaxInt32)}})
		} else if ok {
			number(&g.MaxRunning, 1, math.MaxInt32)(f.decoder, v, path)
		}
		if len(f.problems) > before {
			continue
		}
		if err := g.Validate(); err != nil {
			f.invalid(err, p.key, path)
			continue
		}
		f.m.Groups = append(f.m.Groups, g)
	}
}

func (f *file) readSchedules(n *yaml.Node) {
	if n == nil {
		return
	}
	for _, p := range f.pairs(n, "schedules", "a mapping of schedules by name") {
		s, former := store.Schedule{Name: p.key.Value}, ""
		path := join("schedules", s.Name)
		if !f.once(p.key, path) {
			continue
		}
		f.names[s.Name] = true
		if !f.readRule(&s, p.value, path, "schedule "+s.Name, s.Name, f.zone, field{"renamed_from", text(&former)}) {
			continue
		}
		if err := s.Validate(); err != nil {
			f.invalid(err, p.key, path)
			continue
		}
		f.m.Schedules = append(f.m.Schedules, s)
		f.renamed("schedule", former, s.Name, path)
	}
}

// readRule reads a bare rule, or a mapping with a rule, its zone and so on, and parses the rule. zone is for a
// rule that names none. subject is the job or schedule that has the rule. more has the keys that only a
// schedule has, and a job's own rule has not. readRule returns false if it found a problem.
func (f *file) readRule(s *store.Schedule, n *yaml.Node, path, subject, seed, zone string, more ...field) bool {
	before := len(f.problems)
	f.places = map[string]*yaml.Node{}
	rulePath := path
	if v, ok := f.enter(n, path); !ok {
		return false
	} else if v.Kind == yaml.MappingNode {
		rulePath = join(path, "rule")
		f.mapping(v, path, append(scheduleFields(s), more...))
		if s.Rule == "" && len(f.problems) == before {
			f.problem(v, path, "rule is missing")
		}
	} else {
		text(&s.Rule)(f.decoder, v, path)
	}
	if at := join(path, "calendar"); s.Calendar != "" {
		f.refer(store.Reference{Kind: store.KindCalendar, Name: s.Calendar}, f.place(cmp.Or(f.places[at], n), at))
	}
	if len(f.problems) > before {
		return false
	}
	if s.Zone == "" {
		s.Zone = zone
	}
	zoneless := s.Zone == ""
	if s.Nonexistent != "" {
		f.m.Chosen = append(f.m.Chosen, subject+" nonexistent")
	}
	if s.Ambiguous != "" {
		f.m.Chosen = append(f.m.Chosen, subject+" ambiguous")
	}
	if s.Normalize(); s.OnHoliday != "" && s.Calendar == "" {
		f.problem(f.places[join(path, "on_holiday")], join(path, "on_holiday"), "needs a calendar: name one")
		return false
	}
	d := rules.Defaults{Zone: s.Zone, Start: f.now, Seed: seed, Nonexistent: s.Nonexistent, Ambiguous: s.Ambiguous}
	is := f.parseRule(s, d, zoneless)
	if is.err != nil {
		f.problem(f.places[rulePath], rulePath, "%v", is.err)
	} else if is.needsZone {
		f.m.Zoneless = append(f.m.Zoneless, subject)
	}
	if s.Past = is.past; is.err == nil && (is.past || s.Calendar != "") { // the database decides whether it has a time
		kind, name, _ := strings.Cut(subject, " ")
		f.m.rulePlaces = append(f.m.rulePlaces, f.place(cmp.Or(f.places[rulePath], n), join(join(kind+"s", name), "rule")))
	}
	return is.err == nil
}

// ruleText is a rule with everything that decides how it is read.
type ruleText struct {
	text, calendar, onHoliday string
	by                        rules.Defaults
	zoneless                  bool
}

// parsed is what is known of a rule.
type parsed struct {
	needsZone bool // it has no zone, and means other times in another one
	past      bool // see store.Schedule
	err       error
}

// parseRule parses a rule, without its calendar: how many times that leaves it may depend on when the schedule was made,
// which the database knows. If several jobs have the same rule, parseRule parses it once.
func (f *file) parseRule(s *store.Schedule, d rules.Defaults, zoneless bool) parsed {
	if !strings.Contains(s.Rule, "~") { // a ~ takes its time from the name
		d.Seed = ""
	}
	key := ruleText{s.Rule, s.Calendar, s.OnHoliday, d, zoneless}
	if is, known := f.rules[key]; known {
		return is
	}
	_, err := rules.Parse(s.Rule, d)
	is := parsed{past: onlyNow(err, s.Rule)}
	if !is.past {
		is.err = err
	}
	if d.Calendar = f.calendars[s.Calendar]; d.Calendar != nil { // a calendar of the database is read when the rule is planned
		d.OnHoliday = s.OnHoliday
	}
	is.needsZone = is.err == nil && zoneless && f.dependsOnZone(s.Rule, d)
	if f.rules == nil {
		f.rules = map[ruleText]parsed{}
	}
	f.rules[key] = is
	return is
}

// onlyNow reports whether a rule is refused only because it counts from now: if the database has it already, it counts from
// when it was made.
func onlyNow(err error, text string) bool {
	return (errors.Is(err, rules.ErrNeverFires) || errors.Is(err, rules.ErrUndecided)) && rules.DependsOnStart(text)
}

// dependsOnZone reports whether a rule in UTC means other times in another zone. "Every five minutes" does not, nor does
// a text that has its zone in it. It compares several times, because some of them may be the same by chance. The days of a
// calendar begin at other times in another zone.
func (f *file) dependsOnZone(text string, d rules.Defaults) bool {
	// An RRULE that takes its time of day from its start means other times only after the clock has changed. The start must
	// not lie in an hour that a clock repeats.
	d.Start = f.now.Truncate(24 * time.Hour).Add(12 * time.Hour)
	d.Zone = ""
	r, err := rules.Parse(text, d)
	if err != nil {
		return false
	}
	for _, d.Zone = range []string{"Etc/GMT+5", "America/New_York"} {
		other, err := rules.Parse(text, d)
		if err != nil {
			return false
		}
		if d.Calendar != nil && other.String() != r.String() {
			return true
		}
		for _, from := range []time.Time{f.now, f.now.AddDate(0, 6, 0)} {
			here, errHere := r.Between(from, rules.Last, 10)
			there, errThere := other.Between(from, rules.Last, 10)
			if errHere == nil && errThere == nil && !slices.EqualFunc(here, there, time.Time.Equal) {
				return true
			}
		}
	}
	return false
}

func scheduleFields(s *store.Schedule) []field {
	return []field{
		{"rule", text(&s.Rule)},
		{"zone", text(&s.Zone)},
		{"nonexistent", choice(&s.Nonexistent, store.NonexistentForward, store.NonexistentSkip)},
		{"ambiguous", choice(&s.Ambiguous, store.AmbiguousFirst, store.AmbiguousLast, store.AmbiguousBoth)},
		{"calendar", text(&s.Calendar)},
		{"on_holiday", choice(&s.OnHoliday, store.HolidaySkip, store.HolidayNext, store.HolidayPrevious)},
		{"description", text(&s.Description)},
	}
}

// invalid reports why package store refuses a definition. The problem is at the field that the error names, if
// the file has that field.
func (f *file) invalid(err error, owner *yaml.Node, path string) {
	fe, ok := errors.AsType[*store.FieldError](err)
	if !ok {
		f.problem(owner, path, "%v", err)
		return
	}
	at, where := owner, path
	if _, step, ok := strings.Cut(fe.Subject, ", step "); ok {
		where = f.stepPath(path, step)
	}
	if fe.Field != "" && fe.Field != "name" {
		where += "." + fe.Field
	}
	for full := where; len(full) > len(path); full = shorten(full) {
		if n := f.places[full]; n != nil {
			at = n
			break
		}
	}
	f.problem(at, where, "%s", fe.Problem)
}

// stepPath returns the path of the step with that name in the job at path. If the job has no list of steps, it
// returns the path of the job.
func (f *file) stepPath(path, name string) string {
	for i := 0; ; i++ {
		step := fmt.Sprintf("%s.steps[%d]", path, i)
		if f.places[step] == nil {
			return path
		}
		if n := f.places[step+".name"]; n != nil && n.Value == name || n == nil && name == stepName(i) {
			return step
		}
	}
}

// shorten removes the last part of a path.
func shorten(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}
