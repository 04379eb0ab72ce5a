package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command's help has an example of that command, with flags that it has.
func TestHelpHasExamples(t *testing.T) {
	flag := regexp.MustCompile(`\s--([a-z-]+)`)
	var commands func(cmd *cobra.Command)
	commands = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.Name() == "help" { // cobra's own
			return
		}
		for _, sub := range cmd.Commands() {
			commands(sub)
		}
		if cmd.HasSubCommands() {
			return
		}
		if cmd.Example == "" {
			t.Errorf("%s has none", cmd.CommandPath())
			return
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.Contains(line, cmd.CommandPath()) {
				t.Errorf("%s: an example of something else: %s", cmd.CommandPath(), line)
			}
			for _, m := range flag.FindAllStringSubmatch(line, -1) {
				if cmd.Flag(m[1]) == nil {
					t.Errorf("%s: there is no --%s: %s", cmd.CommandPath(), m[1], line)
				}
			}
		}
	}
	commands(newCLI(nil, io.Discard, io.Discard, func(string) (string, bool) { return "", false }).root())
}

// The hints for words of other programs name commands and flags that there are.
func TestHintsNameCommands(t *testing.T) {
	root := allCommands()
	for _, o := range otherCommands {
		for _, command := range o.commands {
			if found, _, err := root.Find(strings.Fields(command)); err != nil || found.CommandPath() != "dbjobs "+command {
				t.Errorf("%q: there is no command %s", o.words, command)
			}
		}
	}
	create, _, err := root.Find([]string{"job", "create"})
	if err != nil {
		t.Fatal(err)
	}
	for word, flags := range otherFlags {
		for _, f := range flags {
			if create.Flag(f) == nil || create.Flag(word) != nil {
				t.Errorf("--%s: there is no --%s, or no need for it", word, f)
			}
		}
	}
}

// If the command line begins with the words of one command, only that command is made. It is the same as when all
// commands are made.
func TestACommandMadeAlone(t *testing.T) {
	eachCommand(allCommands(), func(cmd *cobra.Command) {
		words := strings.Fields(cmd.CommandPath())[1:]
		if len(words) == 0 || words[0] == "completion" { // cobra's own
			return
		}
		c := newCLI(nil, io.Discard, io.Discard, func(string) (string, bool) { return "", false })
		c.words = words
		alone := c.root()
		for _, word := range words {
			made := slices.DeleteFunc(alone.Commands(), func(sub *cobra.Command) bool { return sub.Name() == "help" })
			if len(made) != 1 || made[0].Name() != word {
				t.Errorf("for %s, %d commands of %s are made", cmd.CommandPath(), len(made), alone.CommandPath())
				return
			}
			alone = made[0]
		}
		if a, b := alone.UsageString(), cmd.UsageString(); a != b || alone.Short != cmd.Short {
			t.Errorf("%s alone:\n%s\nwith all others:\n%s", cmd.CommandPath(), a, b)
		}
	})
}

// TestReadmeNamesTheExitCodes: the codes of the table are the codes of the help, of the same commands.
func TestReadmeNamesTheExitCodes(t *testing.T) {
	_, help, _ := strings.Cut(allCommands().Long, "Exit codes:")
	var page []string
	for _, row := range readPage(t, programPage).rows("Exit codes") {
		page = append(page, row[0])
		for _, word := range []string{"run-now", "import", "export", "right", "writable", "interrupted"} {
			if strings.Contains(row[1], word) && !strings.Contains(help, word) {
				t.Errorf("%s has %q beside %s, and the help does not", programPage, word, row[0])
			}
		}
	}
	if told := regexp.MustCompile(`\b\d+\b`).FindAllString(help, -1); len(told) == 0 || !slices.Equal(page, told) {
		t.Errorf("%s has the exit codes %q, and the help %q", programPage, page, told)
	}
}
