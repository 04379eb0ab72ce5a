package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// The kinds of definitions that other definitions name.
const (
	KindJob      = "job"
	KindSchedule = "schedule"
	KindCalendar = "calendar"
	KindGroup    = "group"
)

// Reference is a name by which a definition uses another one.
type Reference struct {
	Kind  string
	Name  string // of a job: by its name, or by owner/name
	Owner string // of the job that names another one; empty: the login
	Done  bool   // a job that remove_when_done has removed counts, too
}

// Known has the definitions of the database that some references name. The zero value knows no definition.
type Known struct {
	Schedules map[string]Schedule

	calendars map[string]*Calendar
	groups    map[string]Group
	jobs      knownJobs
	done      doneJobs
	login     string
	names     map[string][]string // of all definitions, by kind; nil: nothing is missing
}

// Known finds the definitions that references name.
func (s *Store) Known(ctx context.Context, list []Reference) (k *Known, err error) {
	k = &Known{jobs: newKnownJobs()}
	names := map[string][]string{}
	for _, r := range list {
		names[r.Kind] = append(names[r.Kind], plainName(r.Name))
	}
	for kind := range names {
		names[kind] = legible(names[kind])
	}
	if k.Schedules, err = s.schedulesNamed(ctx, s.db, names[KindSchedule]); err != nil {
		return nil, err
	}
	if k.calendars, err = calendarsNamed(ctx, s.db, names[KindCalendar]); err != nil {
		return nil, err
	}
	if len(names[KindGroup]) > 0 {
		if k.groups, err = s.groups(ctx, s.db); err != nil {
			return nil, err
		}
	}
	if err := s.knownJobs(ctx, k, names[KindJob], list); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(list, func(r Reference) bool { return k.Missing(r) != "" }) {
		return k, s.allNames(ctx, k)
	}
	return k, nil
}

// knownJobs finds the jobs with these names, also those that are done.
func (s *Store) knownJobs(ctx context.Context, k *Known, names []string, list []Reference) (err error) {
	if len(names) == 0 {
		return nil
	}
	if k.login, err = s.Login(ctx); err != nil {
		return err
	}
	if err := s.jobsNamed(ctx, s.db, names, k.jobs.add); err != nil {
		return err
	}
	var gone []string
	for _, r := range list {
		if r.Kind == KindJob && r.Done && k.Missing(r) != "" {
			gone = append(gone, plainName(r.Name))
		}
	}
	k.done, err = readDone(ctx, s.db, gone)
	return err
}

// allNames reads all names of each kind: those that may be meant by a name that is missing.
func (s *Store) allNames(ctx context.Context, k *Known) error {
	schedules, err := s.Schedules(ctx)
	if err != nil {
		return err
	}
	calendars, err := s.Calendars(ctx)
	if err != nil {
		return err
	}
	groups, err := s.Groups(ctx)
	if err != nil {
		return err
	}
	jobs, err := s.JobNames(ctx)
	k.names = map[string][]string{}
	add := func(kind, name string) { k.names[kind] = append(k.names[kind], name) }
	for i := range schedules {
		add(KindSchedule, schedules[i].Name)
	}
	for i := range calendars {
		add(KindCalendar, calendars[i].Name)
	}
	for i := range groups {
		add(KindGroup, groups[i].Name)
	}
	for i := range jobs {
		add(KindJob, jobs[i].Name)
	}
	for kind := range k.names {
		slices.Sort(k.names[kind])
		k.names[kind] = slices.Compact(k.names[kind])
	}
	return err
}

// Calendar returns a calendar that a reference names; nil: it does not exist.
func (k *Known) Calendar(name string) *Calendar { return k.calendars[name] }

// Names returns the names of all definitions of a kind, if a reference names nothing.
func (k *Known) Names(kind string) []string { return k.names[kind] }

// Missing says what a reference names that does not exist, or not once; empty: it is there.
func (k *Known) Missing(r Reference) string {
	found := false
	switch r.Kind {
	case KindSchedule:
		_, found = k.Schedules[r.Name]
	case KindCalendar:
		_, found = k.calendars[r.Name]
	case KindGroup:
		_, found = k.groups[r.Name]
	case KindJob:
		owner := cmp.Or(r.Owner, k.login)
		_, err := k.jobs.find(r.Name, owner)
		if err != nil && r.Done {
			if _, gone := k.done.jobs.find(r.Name, owner); gone == nil {
				return ""
			}
		}
		if several, ok := errors.AsType[*severalError](err); ok {
			return several.Error()
		}
		found = err == nil
	}
	if found {
		return ""
	}
	return fmt.Sprintf("there is no %s %q", r.Kind, r.Name)
}
