package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/dbjobs/dbjobs/store"
)

// Uninstalled is what uninstall has dropped.
type Uninstalled struct {
	Database string `json:"database"`
	store.Contents
	SchemaStays bool `json:"schema_stays"` // the schema contains something that does not belong to dbjobs
}

// Lost names what is deleted.
func (u Uninstalled) Lost() string {
	return fmt.Sprintf("%s, %s and %s", Plural(u.Jobs, "job"), Plural(u.Schedules, "shared schedule"), Plural(u.Runs, "run"))
}

// Print writes the same for people.
func (u Uninstalled) Print(w io.Writer) error {
	text := fmt.Sprintf("dropped the tables of dbjobs in %s, with %s\n", Line(u.Database), u.Lost())
	if u.SchemaStays {
		text += "the schema dbjobs stays: there is something in it that is not of dbjobs\n"
	}
	if path, file := strings.CutPrefix(u.Database, "sqlite:"); file {
		text += fmt.Sprintf("the file %s stays\n", Line(path))
	}
	_, err := io.WriteString(w, text)
	return err
}
