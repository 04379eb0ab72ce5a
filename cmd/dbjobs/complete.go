package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

// completionTime is the longest time that a completion may take while its user waits.
const completionTime = 2 * time.Second

// completionRuns is how many of the latest runs a completion offers.
const completionRuns = 50

// lookup finds the values that may stand in a place of the command line.
type lookup func(ctx context.Context, s *store.Store) ([]string, error)

// completes lets the shell complete the values of arguments and flags of all commands: jobs and their parts,
// schedules, calendars and runs of the database, the words that a policy allows, and files.
func (c *cli) completes(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		c.completes(sub)
	}
	_, names, _ := strings.Cut(cmd.Use, " ")
	arguments := strings.Fields(names)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(arguments) > 0 && strings.Trim(arguments[0], "[]") == "FILE" {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if len(args) < len(arguments) {
			if find := argumentNames(cmd, strings.Trim(arguments[len(args)], "[]"), args); find != nil {
				return c.offer(cmd, begun, find)
			}
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { c.completeFlag(cmd, f) })
	if !cmd.HasParent() {
		cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { c.completeFlag(cmd, f) })
	}
}

// argumentNames returns the lookup for an argument of a command. It is chosen by the name of the argument in the
// usage line, and by the arguments before it. It returns nil for an argument that names something new, and for one
// that names nothing.
func argumentNames(cmd *cobra.Command, argument string, before []string) lookup {
	if len(before) > 0 {
		switch {
		case argument == "STEP":
			return partsOf(before[0], stepNames)
		case argument == "RULE-OR-NAME" && cmd.Name() == "add":
			return scheduleNames
		case argument == "RULE-OR-NAME":
			return partsOf(before[0], ruleNames)
		}
		return nil
	}
	switch argument {
	case "RUN":
		return runLabels
	case "JOB":
		return jobNames
	case "NAME", "OLD":
		subjects := map[string]lookup{"job": jobNames, "schedule": scheduleNames, "calendar": calendarNames}
		if find := subjects[cmd.Parent().Name()]; cmd.Name() != "create" {
			return find
		}
	}
	return nil
}

// flagWords has the lookups of flags that have the same meaning in all commands.
var flagWords = map[string]lookup{
	"job": jobNames, "after": jobNames, "on-failed": jobNames, "on-late": jobNames, "on-lost": jobNames, "on-missed": jobNames, "on-parked": jobNames,
	"on-paused": jobNames, "on-recovered": jobNames,
	"schedule": scheduleNames, "calendar": calendarNames,
	"tag": func(ctx context.Context, s *store.Store) ([]string, error) {
		return ofJobs(ctx, s, func(j store.JobName) []string { return j.Tags })
	},
	"owner": func(ctx context.Context, s *store.Store) ([]string, error) {
		return ofJobs(ctx, s, func(j store.JobName) []string { return []string{j.Owner} })
	},
	"queue": func(ctx context.Context, s *store.Store) ([]string, error) {
		return ofJobs(ctx, s, func(j store.JobName) []string { return []string{j.Queue} })
	},
}

// completeFlag sets how the value of a flag is completed. If the command completes the flag itself, completeFlag
// changes nothing.
func (c *cli) completeFlag(cmd *cobra.Command, f *pflag.Flag) {
	var complete cobra.CompletionFunc
	value, _ := pflag.UnquoteUsage(f)
	switch find, fixed := flagWords[f.Name], fixedWords(cmd, f); {
	case value == "FILE" || slices.Contains([]string{"file", "diff", "output", "metrics"}, f.Name):
		complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		}
	case f.Name == "from-step":
		complete = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			if cmd.Name() == "run-now" {
				return c.offer(cmd, begun, partsOf(args[0], stepNames))
			}
			return c.offer(cmd, begun, stepsOfRun(args[0]))
		}
	case len(fixed) > 0:
		complete = func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return begins(slices.Clone(fixed), begun), cobra.ShellCompDirectiveNoFileComp
		}
	case find != nil:
		complete = func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return c.offer(cmd, begun, find)
		}
	default:
		return
	}
	_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails if the command has a completion of its own
}

// fixedWords returns the words of a flag that takes no others; nil: it takes others.
func fixedWords(cmd *cobra.Command, f *pflag.Flag) []string {
	switch {
	case f.Name == "reset":
		return definitionNames(cmd)
	case f.Name == "log-format":
		return []string{logs.Text, logs.JSON, logs.GCP}
	case f.Name == "print-grants":
		return store.LoginKinds
	case f.Name == "state" && cmd.Parent().Name() == "run":
		return store.RunStates
	case f.Name == "state":
		return store.JobStates
	}
	for _, p := range store.Policies() {
		if p.FlagName() == f.Name && p.Help != "" {
			return p.Allowed
		}
	}
	return nil
}

// definitionNames returns the flags of a command that describe a job, a step or a schedule.
func definitionNames(cmd *cobra.Command) (list []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, describes := f.Value.(definitionFlag); describes {
			list = append(list, f.Name)
		}
	})
	return list
}

// offer returns the words that begin with the text typed so far. If the database does not answer in time, it
// returns none. It never prints a message.
func (c *cli) offer(cmd *cobra.Command, begun string, find lookup) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	c.stderr = io.Discard
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	cmd.SetContext(ctx)
	if err := c.fromEnvironment(cmd); err != nil {
		return nil, none
	}
	s, err := c.open(cmd, use)
	if err != nil {
		return nil, none
	}
	defer s.Close()
	found, err := find(ctx, s)
	if err != nil {
		return nil, none
	}
	return begins(found, begun), none | cobra.ShellCompDirectiveKeepOrder
}

// executed are the characters of a word by which a shell starts a command.
const executed = "`$;&|<>()"

// begins keeps the words that begin with the text typed so far. It drops words that could control the terminal, and those by which
// the shell of the user would start a command: anybody who may name a job would choose it. Bash inserts what several words have in
// common as it stands, and the next completion evaluates the line.
func begins(list []string, begun string) []string {
	return slices.DeleteFunc(list, func(w string) bool {
		word, _, _ := strings.Cut(w, "\t")
		return word == "" || !strings.HasPrefix(word, begun) || report.Line(word) != word || strings.ContainsAny(word, executed)
	})
}

// jobNames returns the names of the login's own jobs, and owner/name for the others.
func jobNames(ctx context.Context, s *store.Store) ([]string, error) {
	login, err := s.Login(ctx)
	if err != nil {
		return nil, err
	}
	return ofJobs(ctx, s, func(j store.JobName) []string {
		if j.Owner == login {
			return []string{j.Name}
		}
		return []string{j.Owner + "/" + j.Name}
	})
}

// ofJobs returns the words that of gives for all jobs, each once, in order.
func ofJobs(ctx context.Context, s *store.Store, of func(store.JobName) []string) (list []string, err error) {
	jobs, err := s.JobNames(ctx)
	for _, j := range jobs {
		list = append(list, of(j)...)
	}
	slices.Sort(list)
	return slices.Compact(list), err
}

func scheduleNames(ctx context.Context, s *store.Store) (list []string, err error) {
	schedules, err := s.Schedules(ctx)
	for _, v := range schedules {
		list = append(list, v.Name)
	}
	return list, err
}

// calendarNames returns the names of all calendars. An existing calendar may be imported again, so "calendar
// import" offers them, too.
func calendarNames(ctx context.Context, s *store.Store) (list []string, err error) {
	calendars, err := s.Calendars(ctx)
	for i := range calendars {
		list = append(list, calendars[i].Name)
	}
	return list, err
}

// partsOf returns the lookup for the words that of gives for one job.
func partsOf(job string, of func(store.Job) []string) lookup {
	return func(ctx context.Context, s *store.Store) ([]string, error) {
		j, err := s.Job(ctx, job)
		if err != nil {
			return nil, err
		}
		return of(j.Job), nil
	}
}

// stepsOfRun returns the lookup for the steps of the job of a run.
func stepsOfRun(run string) lookup {
	return func(ctx context.Context, s *store.Store) ([]string, error) {
		r, err := s.Run(ctx, run)
		if err != nil {
			return nil, err
		}
		return partsOf(r.FullJob(), stepNames)(ctx, s)
	}
}

func stepNames(j store.Job) (list []string) {
	for _, st := range j.Steps {
		list = append(list, st.Name)
	}
	return list
}

// ruleNames returns the schedules of a job by their names, and its own rule by its text.
func ruleNames(j store.Job) []string {
	list := slices.Clone(j.Schedules)
	if j.Own != nil {
		list = append(list, j.Own.Rule)
	}
	return list
}

// runLabels returns the labels of the latest runs, with their states, and the jobs: the name of a job stands for
// its latest run.
func runLabels(ctx context.Context, s *store.Store) ([]string, error) {
	runs, err := s.Runs(ctx, store.RunFilter{Limit: completionRuns})
	if err != nil {
		return nil, err
	}
	login, err := s.Login(ctx)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, r := range runs {
		list = append(list, strings.TrimPrefix(r.Label(), login+"/")+"\t"+r.State+" "+report.Instant(r.CreatedAt))
	}
	jobs, err := jobNames(ctx, s)
	return append(list, jobs...), err
}
