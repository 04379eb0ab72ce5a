package store

import (
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// PostgresTexts returns all statements for PostgreSQL as they are sent, by name, and those that make its tables.
func PostgresTexts() (statements map[string]string, schema string, err error) {
	postgres, err := engine.Of("postgres:")
	if err != nil {
		return nil, "", err
	}
	statements = map[string]string{"lock": postgres.SchemaLock}
	all := Statements(postgres)
	for _, name := range all.Names() {
		if statements[name], _, err = all.Text(name); err != nil {
			return nil, "", err
		}
	}
	migrations, err := postgres.Migrations()
	var b strings.Builder
	for _, m := range migrations {
		b.WriteString(strings.Join(m.Statements, ";\n") + ";\n")
	}
	if err != nil {
		return nil, "", err
	}
	repeatables, err := all.Repeatables(false)
	for _, r := range repeatables {
		if r.Kind == "VIEW" {
			b.WriteString(strings.Join(r.Statements, ";\n") + ";\n")
		}
	}
	return statements, b.String(), err
}

// PlanInput and ReadPlanned show how the text of jobs.plan_input is read.
var (
	PlanInput   = planInput
	ReadPlanned = readPlanned
)

// Column returns the column of jobs that keeps the policy, and a pointer to the policy's value. The
// name is empty if the policy has no column of its own.
func (p *Policy) Column(j *Job) (name string, value any) { return p.column, p.value(j) }

// Null reports whether the policy's zero value is NULL.
func (p *Policy) Null() bool { return p.null }

// Inverted is the form in which the column of disabled is kept: the other way round.
type Inverted = not
