package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command's help has an example, of just that command, with flags that it has.
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
