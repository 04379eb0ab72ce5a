package report

import (
	"strings"

	"github.com/dbjobs/dbjobs/store"
)

// DefinitionWarning is something in a definition that works, but that its author may not mean.
type DefinitionWarning struct {
	Kind    string `json:"kind"` // of the subject: job, schedule, calendar or variable
	Subject string `json:"subject"`
	Code    string `json:"code"` // one of the codes that the page of the command lists
	Text    string `json:"text"`
	Do      string `json:"do,omitempty"` // what to do, if the text does not say it
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

// CreatedSchedule is a new schedule, with the warnings of its definition.
type CreatedSchedule struct {
	store.Schedule
	Warnings []DefinitionWarning `json:"warnings"`
}
