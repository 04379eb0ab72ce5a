package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) version() *cobra.Command {
	return c.prints(&cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: `  dbjobs version --json`,
		Args:    positional(),
		RunE: c.do(func(*cobra.Command, []string) error {
			v := build()
			return c.print(v, func() error { return v.Print(c.stdout) })
		}),
	})
}

// versionFlag makes --version do the same as the command version, as in most programs.
func (c *cli) versionFlag(root *cobra.Command) {
	var asked bool
	root.Flags().BoolVar(&asked, "version", false, "print the version of this program")
	help := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if asked && len(args) == 0 {
			return build().Print(c.stdout)
		}
		return help(cmd, args)
	}
}

// released is the version of a release. scripts/release gives it to the linker. In every other program it is
// empty, and the record of the Go build counts.
var released string

// build returns what this program was built from.
func build() report.Version {
	v := report.Version{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: store.Latest}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	if released != "" {
		v.Version = released
	}
	return v
}
