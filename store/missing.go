package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// MissingError says that no definition or run has a name that somebody gave. It wraps ErrNotFound.
type MissingError struct {
	Kind    string // job, schedule, calendar, run, tag or owner
	Name    string // as it was given
	Nearest string // a name that exists; empty: no name is near, or none was looked for
	said    string
	want    string // what a name may be, where that is not obvious
}

// missingRun returns the error for a run that does not exist.
func missingRun(name string) *MissingError {
	return &MissingError{Kind: "run", Name: name, said: "run " + name, want: "want JOB#NUMBER, JOB for its latest run, or an id; "}
}

// missing returns the error for a definition that does not exist.
func missing(kind, name string) *MissingError {
	return &MissingError{Kind: kind, Name: name, said: fmt.Sprintf("%s %q", kind, name)}
}

func (m *MissingError) Error() string {
	if m.Nearest != "" {
		return m.said + ": not found; nearest: " + m.Nearest
	}
	list := m.Kind
	if list == ScopeTag || list == ScopeOwner {
		list = "job"
	}
	return m.said + ": not found; " + m.want + "`dbjobs " + list + " list` shows them"
}

func (m *MissingError) Unwrap() error { return ErrNotFound }

// Names returns the names that the missing name could have meant, in order. Names of jobs have their owner if the
// missing name has one.
func (s *Store) Names(ctx context.Context, m *MissingError) (names []string, err error) {
	switch m.Kind {
	case KindSchedule:
		list, err := s.Schedules(ctx)
		for _, c := range list {
			names = append(names, c.Name)
		}
		return names, err
	case KindCalendar:
		list, err := s.Calendars(ctx)
		for i := range list {
			names = append(names, list[i].Name)
		}
		return names, err
	}
	jobs, err := s.JobNames(ctx)
	for _, j := range jobs {
		switch {
		case m.Kind == ScopeTag:
			names = append(names, j.Tags...)
		case m.Kind == ScopeOwner:
			names = append(names, j.Owner)
		case strings.Contains(m.Name, "/"):
			names = append(names, FullName(j.Owner, j.Name))
		default:
			names = append(names, j.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}
