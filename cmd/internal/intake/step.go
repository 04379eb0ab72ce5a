package intake

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Statement is a step of SQL, in a database of the host's if target names one.
func Statement(name, text, target string) store.Step {
	return step(name, "sql", executor.SQLSpec{SQL: executor.Texts(strings.TrimSpace(text)), Target: target})
}

// Program is a step of exec or shell.
func Program(kind string, v executor.ProgramSpec) store.Step { return step("", kind, v) }

// Mail is a step that sends a mail.
func Mail(v executor.MailSpec) store.Step { return step("", "mail", v) }

func step(name, kind string, v any) store.Step {
	b, err := json.Marshal(v)
	if err != nil {
		b = nil // texts only; without a spec, the step is refused
	}
	return store.Step{Name: name, Executor: kind, Spec: b}
}

// Targets says which target of the host a database of the source is, by its name there. The name "" is
// for all others.
type Targets map[string]string

// Of is the target of a database, or "".
func (t Targets) Of(database string) string {
	if name, found := t[database]; found {
		return name
	}
	return t[""]
}

// Note says in which database, and as whom, a statement ran, where that changes.
func (t Targets) Note(database, user string) string {
	if target := t.Of(database); target != "" {
		return fmt.Sprintf("It ran in the database %s as %s; here as the login in the URL of the target %s.", database, user, target)
	}
	return fmt.Sprintf("It ran in the database %s as %s; here in dbjobs' own as the login of the tick. For another: --target %s=NAME, "+
		"a target of the host settings.", database, user, database)
}

// Kept makes a name of one that the source has, which stays as it is where it can.
func Kept(name string) string {
	name = strings.TrimSpace(strings.ReplaceAll(printable(name), "/", "-"))
	if len(name) > 100 {
		return Slug(name)
	}
	return name
}

// NameOf makes a name of the first words of a text.
func NameOf(text string) string {
	words := strings.Fields(text)
	return Slug(strings.Join(words[:min(5, len(words))], " "))
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '-'
		}
		return r
	}, strings.ToValidUTF8(text, "-"))
}
