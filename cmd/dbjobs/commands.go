package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// subcommand is a command of a group: the word that names it, and the function that makes it.
type subcommand struct {
	word string
	make func(*cli) *cobra.Command
}

// add adds commands to their group. If the next word of the command line names a command, add adds only that
// command. Otherwise it adds all of them, because the help or a message lists them. Making every command took a
// quarter of the time of a short invocation.
func (c *cli) add(g *cobra.Command, list []subcommand) {
	named := slices.IndexFunc(list, func(s subcommand) bool { return len(c.words) > 0 && c.words[0] == s.word })
	if named >= 0 {
		list, c.words = list[named:named+1], c.words[1:]
	} else {
		c.words = nil
	}
	for _, s := range list {
		g.AddCommand(s.make(c))
	}
}

// root makes the command line: with the one command that words name, or with all commands.
func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "dbjobs",
		Short: "Run scheduled jobs that live in a database",
		Long: `dbjobs runs scheduled jobs whose definitions, schedules and history live in a database.
No process stays running: let cron, a systemd timer or a cloud scheduler start "dbjobs tick" each minute.

Set the database with --database or DBJOBS_DATABASE_URL: postgres://user:password@host/database,
mysql://user:password@host/database or sqlite:path. Or put the URL into a file and name the file in
DBJOBS_DATABASE_URL_FILE, or into a secret on AWS and name it in DBJOBS_DATABASE_SECRET_ARN, or into the
settings of the host (~/.config/dbjobs/config.yaml, /etc/dbjobs/config.yaml or DBJOBS_CONFIG; "dbjobs config check"
shows what is in force). Without any of these, dbjobs uses an embedded SQLite file in $XDG_DATA_HOME/dbjobs or
~/.local/share/dbjobs, on Windows in %LOCALAPPDATA%\dbjobs; apply, job create, schedule create, calendar import and
migrate make that file if it is not there.

Exit codes: 0 done, 1 failed, 2 usage or bad input, 3 a job failed (tick --fail-on-job-error, run-now --wait) or something
was left out (import, export), 4 the schema does not fit this program, 5 the database is unreachable or not writable, or the
login lacks a right there, 130 interrupted. check, diff and doctor have codes of their own: see their help.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	c.anywhere(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return badInput("--%s: %s", bad.GetFlag().Name, badValue(bad.GetFlag(), bad.GetValue(), errors.Unwrap(bad)))
		}
		return &usageError{problem: err.Error()}
	})
	c.add(root, []subcommand{
		{"migrate", (*cli).migrate}, {"uninstall", (*cli).uninstall}, {"apply", (*cli).apply}, {"diff", (*cli).diff}, {"export", (*cli).export},
		{"schema", (*cli).schema}, {"import", (*cli).importFrom}, {"job", (*cli).job}, {"schedule", (*cli).schedule}, {"calendar", (*cli).calendar},
		{"tick", (*cli).tick}, {"work", (*cli).work}, {"serve", (*cli).serve}, {"run", (*cli).runs}, {"status", (*cli).status},
		{"errors", (*cli).failures}, {"missed", (*cli).missed}, {"upcoming", (*cli).upcoming}, {"simulate", (*cli).simulate}, {"check", (*cli).check},
		{"report", (*cli).report}, {"doctor", (*cli).doctor}, {"freeze", (*cli).freeze}, {"unfreeze", (*cli).unfreeze}, {"pauses", (*cli).pauseList},
		{"rule", (*cli).rule}, {"config", (*cli).config}, {"version", (*cli).version},
	})
	root.SetHelpCommand(helpCommand())
	root.CompletionOptions.DisableDefaultCmd = len(root.Commands()) == 1 // if one command was made, it is not completion
	root.InitDefaultCompletionCmd()
	for _, sub := range root.Commands() {
		if sub.Name() == "completion" {
			group(sub)
		}
	}
	if c.completing {
		c.completes(root)
	} else {
		once(root) // a completion reads the flags several times
	}
	c.versionFlag(group(root))
	return root
}

// anywhere adds the flags that each command has, and that may stand before its name.
func (c *cli) anywhere(root *cobra.Command) {
	root.PersistentFlags().StringArrayVar(&c.databases, "database", nil, "`URL` of the database, or its name in the settings of the host; tick, work and serve take several (DBJOBS_DATABASE_URL)")
	root.PersistentFlags().StringVar(&c.logFormat, "log-format", c.logFormat, "format of messages on standard error: text, json, or gcp for Google Cloud")
	fromVariables(root, "log-format")
	root.PersistentFlags().BoolVar(&c.utc, "utc", false, "show and read times in UTC, instead of in the zone of this machine (TZ)")
}

// helpCommand is like the help command of cobra, but an unknown command is an error, with the exit code of one.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(topic, rest)
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}

// group makes a command that only has subcommands fail when it runs without one. So a crontab line that lost
// its end fails.
func group(g *cobra.Command) *cobra.Command {
	g.Args = cobra.ArbitraryArgs
	g.RunE = func(g *cobra.Command, args []string) error { return unknownCommand(g, args) }
	return g
}
