package main

import (
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/doctor"
)

var updateGolden = flag.Bool("update", false, "write the golden files")

// withoutJSON are the commands that print no facts, with the thing that each prints.
var withoutJSON = map[string]string{
	"dbjobs completion": "a script for a shell",
	"dbjobs export":     "a manifest, which is a document of its own",
	"dbjobs report":     "a page",
	"dbjobs schema":     "a document that is JSON already",
	"dbjobs serve":      "nothing: its answers are JSON",
}

// TestFactsAreJSON: each command that prints facts prints them as JSON, too.
func TestFactsAreJSON(t *testing.T) {
	eachCommand(allCommands(), func(cmd *cobra.Command) {
		for prefix := range withoutJSON {
			if cmd.CommandPath() == prefix || strings.HasPrefix(cmd.CommandPath(), prefix+" ") {
				return
			}
		}
		if !cmd.HasSubCommands() && cmd.Flag("json") == nil {
			t.Errorf("%s has no --json", cmd.CommandPath())
		}
	})
}

// printed are the types that commands print as JSON.
var printed = []struct {
	command string
	value   any
}{
	{"apply", report.Applied{}},
	{"check", report.Health{}},
	{"config check", report.Config{}},
	{"diff", report.Difference{}},
	{"doctor", doctor.Report{}},
	{"errors", []store.FailedAttempt{}},
	{"job abort", report.Aborted{}},
	{"job alter", report.Altered{}},
	{"job create", report.CreatedJob{}},
	{"job backfill", report.Backfilled{}},
	{"job history", []store.Change{}},
	{"job list", []store.JobStatus{}},
	{"job remove", report.Removed{}},
	{"job replan", store.Replanned{}},
	{"job run-now", store.Run{}},
	{"job show", report.JobDetail{}},
	{"migrate", report.Schema{}},
	{"missed", []tick.MissedTimes{}},
	{"pauses", []store.Pause{}},
	{"run list", []store.Run{}},
	{"run retry", store.RetriedRun{}},
	{"run show", store.RunDetail{}},
	{"schedule create", report.CreatedSchedule{}},
	{"schedule list", []store.ScheduleStatus{}},
	{"schedule remove", report.RemovedSchedule{}},
	{"schedule show", store.ScheduleStatus{}},
	{"status", report.Status{}},
	{"tick", tick.Report{}},
	{"tick of several databases", servedAll{}},
	{"upcoming", tick.UpcomingRuns{}},
	{"version", report.Version{}},
}

// TestMembersOfJSON: programs rely on the names and the types of the printed members. New members may come, but a
// member keeps its name.
func TestMembersOfJSON(t *testing.T) {
	var b strings.Builder
	for _, p := range printed {
		fmt.Fprintf(&b, "%s\n", p.command)
		members(&b, reflect.TypeOf(p.value), "  ", "")
	}
	const path = "testdata/json-members.txt"
	if *updateGolden {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range qualified(b.String()) {
		found[m] = true
	}
	for _, m := range qualified(string(want)) {
		if !found[m] {
			t.Errorf("%s: there is no %s any more, which breaks the programs that read it", path, m)
		}
	}
}

// qualified returns the lines of a list of members, each after its command.
func qualified(list string) (lines []string) {
	command := ""
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, " ") {
			command = strings.TrimSpace(line)
			continue
		}
		lines = append(lines, command+": "+strings.TrimSpace(line))
	}
	return lines
}

// members writes the members of a type, each as its path and its kind.
func members(b *strings.Builder, typ reflect.Type, indent, name string) {
	for _, own := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if typ.Implements(own) || reflect.PointerTo(typ).Implements(own) {
			fmt.Fprintf(b, "%s%s %s\n", indent, name, typ)
			return
		}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		members(b, typ.Elem(), indent, name)
	case reflect.Slice, reflect.Array:
		members(b, typ.Elem(), indent, name+"[]")
	case reflect.Map:
		members(b, typ.Elem(), indent, name+"{}")
	case reflect.Struct:
		for f := range typ.Fields() {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case tag == "-" || !f.IsExported() && !f.Anonymous:
			case f.Anonymous && tag == "":
				members(b, f.Type, indent, name)
			case tag == "":
				members(b, f.Type, indent, strings.TrimPrefix(name+"."+f.Name, "."))
			default:
				members(b, f.Type, indent, strings.TrimPrefix(name+"."+tag, "."))
			}
		}
	default:
		fmt.Fprintf(b, "%s%s %s\n", indent, name, typ.Kind())
	}
}
