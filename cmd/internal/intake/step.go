package intake

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Statement is a step of SQL. If target names a database of the host, the step runs there.
func Statement(name, text, target string) store.Step {
	return step(name, "sql", executor.SQLSpec{SQL: executor.Texts(strings.TrimSpace(text)), Target: target})
}

// Program is a step of exec or shell.
func Program(kind string, v executor.ProgramSpec) store.Step { return step("", kind, v) }

// reference matches where a text could have a fact of dbjobs.
var reference = lazyregexp.New(`\$\{([a-z])`)

// Verbatim writes a text as one word for the shell. dbjobs finds no fact in it.
func Verbatim(text string) string {
	return "'" + reference.ReplaceAllString(strings.ReplaceAll(text, "'", `'\''`), "$$''{$1") + "'"
}

var (
	simpleVariable = lazyregexp.New(`\$\{([a-z_]+)\}`)
	otherFact      = lazyregexp.New(`\$\{(args\.|secret:|steps\.)`)
)

// WithoutFacts writes ${job} in a text for /bin/sh as ${job-}. That means the same to a shell, and dbjobs does not read it as
// a fact. Where a part of the text may not be the shell's to read, as in quotes or in the input, or can be written in no other
// way, as ${secret:-none}, the shell gets all of the text as a word. remark says what was changed, if anything was.
func WithoutFacts(text string) (out, remark string) {
	const plain = "so that it is not taken for a fact of dbjobs; the "
	isFact := func(found string) bool { return executor.CheckReferences(found) == nil }
	if otherFact.MatchString(text) ||
		strings.ContainsAny(text, `'\`) && slices.ContainsFunc(simpleVariable.FindAllString(text, -1), isFact) {
		text = "eval " + Verbatim(text)
	} else {
		text = simpleVariable.ReplaceAllStringFunc(text, func(found string) string {
			if !isFact(found) {
				return found
			}
			remark = found + " is written with a -, " + plain + "shell reads it as before."
			return found[:len(found)-1] + "-}"
		})
	}
	if remark == "" && strings.Contains(text, "$''{") {
		remark = "${ is written as $''{, " + plain + "command gets it as before."
	}
	return text, remark
}

// Mail is a step that sends a mail.
func Mail(v executor.MailSpec) store.Step { return step("", "mail", v) }

func step(name, kind string, v any) store.Step {
	b, err := json.Marshal(v)
	if err != nil {
		b = nil // the spec has only texts; a step without a spec would be refused
	}
	return store.Step{Name: name, Executor: kind, Spec: b}
}

// Targets maps a database of the source, by its name there, to a target of the host. The name "" stands for all
// other databases.
type Targets map[string]string

// At names a database that is on another server than the source. Two servers may have databases of the same name.
func At(database, server string) string {
	if server == "" {
		return database
	}
	return database + "@" + server
}

// Of returns the target of a database, or "".
func (t Targets) Of(database string) string {
	if name, found := t[database]; found {
		return name
	}
	return t[""]
}

// Unused returns a database to which no statement belongs, of those that have a target of their own, or "".
func (t Targets) Unused(databases []string) string {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if name != "" && !slices.Contains(databases, name) {
			return name
		}
	}
	return ""
}

// Note returns in which database, and as which login, a statement ran, if that changes.
func (t Targets) Note(database, user string) string {
	switch target := t.Of(database); {
	case target != "" && database == "":
		return fmt.Sprintf("The source does not name its database; here it runs as the login in the URL of the target %s.", target)
	case target != "":
		return fmt.Sprintf("It ran in the database %s as %s; here as the login in the URL of the target %s.", database, user, target)
	}
	where, flag := "in the database "+database+" as "+user, store.Argument(database+"=NAME")
	if database == "" {
		where, flag = "in a database that the source does not name", "NAME"
	}
	return fmt.Sprintf("It ran %s; here in dbjobs' own as the login of the tick. For another: --target %s, a target of the host settings.", where, flag)
}

// Kept makes a name from a name of the source. It keeps that name if it can.
func Kept(name string) string {
	name = strings.TrimSpace(strings.TrimLeft(strings.ReplaceAll(printable(name), "/", "-"), "- "))
	if len(name) > 100 {
		return Slug(name)
	}
	return name
}

// NameOf makes a name from the first words of a text.
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
