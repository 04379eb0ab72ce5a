package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/rulecmd"
)

func (c *cli) rule() *cobra.Command {
	g := &cobra.Command{Use: "rule", Short: "Try out rules; needs no database"}
	c.add(g, []subcommand{{"next", (*cli).ruleNext}, {"explain", (*cli).ruleExplain}, {"lint", (*cli).ruleLint}})
	return group(g)
}

// ruleFlags adds --json, and the flags for what the text of a rule leaves open.
func ruleFlags(cmd *cobra.Command, o *rulecmd.Options) {
	cmd.Flags().StringVar(&o.Zone, "zone", "", "time zone of the rule (UTC)")
	cmd.Flags().StringVar(&o.Seed, "seed", "", "name of the schedule, for ~ in a cron line")
	cmd.Flags().StringVar(&o.Nonexistent, "nonexistent", "", "for a local time that a clock change skips: forward or skip (forward)")
	cmd.Flags().StringVar(&o.Calendar, "calendar", "", "`FILE` of holidays, of lines such as \"2026-12-25 Christmas Day\" or iCalendar")
	cmd.Flags().StringVar(&o.WorkingDays, "working-days", "", "weekdays that are no holidays, as MO-FR (all)")
	cmd.Flags().StringVar(&o.OnHoliday, "on-holiday", "", "for a time on a holiday: skip, next or previous working day (skip)")
	cmd.Flags().StringVar(&o.Ambiguous, "ambiguous", "", "for a local time that a clock change repeats: first, last or both (first)")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
}

func (c *cli) ruleNext() *cobra.Command {
	var o rulecmd.Options
	var after string
	var lines bool
	cmd := &cobra.Command{
		Use: "next RULE", Short: "Print when a rule fires next", Args: positional("RULE?"),
		Long: `Prints when a rule fires next, in UTC, and by the clock of the rule's zone if that is another one. With --jsonl it
answers questions from standard input, one JSON object per line:
{"id": 1, "rule": "30 2 * * *", "after": "2026-03-29T00:30:00Z", "count": 3, "zone": "Europe/Berlin"}
Only "rule" is required.`,
		Example: `  dbjobs rule next "30 2 * * *" --zone Europe/Berlin --after 2026-03-28T12:00:00Z`,
	}
	ruleFlags(cmd, &o)
	cmd.Flags().StringVar(&after, "after", "", "print times after this one, such as tomorrow or 2026-03-28T12:00:00Z (now)")
	cmd.Flags().IntVar(&o.Count, "count", rulecmd.DefaultCount, "number of times to print")
	cmd.Flags().BoolVar(&lines, "jsonl", false, "answer questions from standard input")
	cmd.RunE = c.do(func(cmd *cobra.Command, args []string) (err error) {
		o.Rules, o.Now, o.Open = args, time.Now(), opener(cmd.Context())
		if err := badRule(o.ReadCalendar()); err != nil {
			return err
		}
		if o.After, err = instantFlag("after", after, ahead); err != nil {
			return err
		}
		switch {
		case lines && len(args) > 0:
			return badInput("--jsonl reads rules from standard input; remove the argument %q", args[0])
		case lines: // without a buffer: a program that asks one line at a time waits for the answer
			return rulecmd.NextLines(interruptible{cmd.Context(), c.stdin}, c.answers, o)
		}
		return badRule(rulecmd.Next(c.stdout, o))
	})
	return cmd
}

func (c *cli) ruleExplain() *cobra.Command {
	var o rulecmd.Options
	cmd := &cobra.Command{
		Use: "explain RULE", Short: "Explain a rule: in English, as RFC 5545 text, and when it fires", Args: positional("RULE"),
		Example: `  dbjobs rule explain "*/15 9-17 * * MON-FRI" --zone Europe/Berlin`,
	}
	ruleFlags(cmd, &o)
	cmd.RunE = c.ofRules(&o, rulecmd.Explain)
	return cmd
}

func (c *cli) ruleLint() *cobra.Command {
	var o rulecmd.Options
	cmd := &cobra.Command{
		Use: "lint RULE...", Short: "Warn about rules that may surprise; exit code 2 if one is not valid", Args: cobra.ArbitraryArgs,
		Example: `  dbjobs rule lint "0 0 */2 * MON" "every 5m"`,
	}
	ruleFlags(cmd, &o)
	cmd.Flags().IntVar(&o.MaxPerDay, "max-per-day", 0, "warn about rules that fire more than `N` times a day")
	cmd.RunE = c.ofRules(&o, rulecmd.Lint)
	return cmd
}

// ofRules does what a command does with the rules that it is given.
func (c *cli) ofRules(o *rulecmd.Options, do func(io.Writer, rulecmd.Options) error) func(*cobra.Command, []string) error {
	return c.do(func(cmd *cobra.Command, args []string) error {
		o.Rules, o.Now, o.Open = args, time.Now(), opener(cmd.Context())
		if err := badRule(o.ReadCalendar()); err != nil {
			return err
		}
		return badRule(do(c.stdout, *o))
	})
}

// badRule makes every error of a rule command bad input, because nothing else can go wrong there.
func badRule(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{problem: err.Error()}
}
