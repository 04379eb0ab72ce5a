package report

import (
	"strings"

	"github.com/dbjobs/dbjobs/store"
)

// DefinitionWarning is something about a definition that works, and may not be meant.
type DefinitionWarning struct {
	Kind    string `json:"kind"` // of what it is about: job, schedule, calendar or variable
	Subject string `json:"subject"`
	Code    string `json:"code"` // one of those that the command's page lists
	Text    string `json:"text"`
	Do      string `json:"do,omitempty"` // what to do, where the text does not say it
}

func (w DefinitionWarning) String() string {
	var b strings.Builder
	b.WriteString(w.Kind + " " + w.Subject + ": " + w.Code + ": " + w.Text)
	if w.Do != "" {
		b.WriteString("; " + w.Do)
	}
	return b.String()
}

// CreatedJob is a new job, with the warnings of its definition.
type CreatedJob struct {
	store.JobStatus
	Warnings []DefinitionWarning `json:"warnings"`
}

// CreatedSchedule is a new schedule, likewise.
type CreatedSchedule struct {
	store.Schedule
	Warnings []DefinitionWarning `json:"warnings"`
}
