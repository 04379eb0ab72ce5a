package main

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/cmd/internal/wake"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/nearest"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// scrub removes credentials from a message: those of the database, those of a URL in a wrong place, and everything
// else that looks like a credential.
func (c *cli) scrub(text string) string { return c.db.Scrub(c.secrets.Hide(text)) }

// notice remembers the secrets in the command line and in the environment, in whichever place they are: a message
// about a value in a wrong place may quote it.
func (c *cli) notice(args []string) {
	for _, a := range args {
		c.secrets.AddURL(a)
	}
	for _, name := range variables() {
		value, _ := c.env(name)
		c.secrets.AddURL(value)
	}
}

// bare has the variables that are no flags, except those of the database.
var bare = append([]string{host.Variable, instanceVariable, marginVariable, allowVariable, bucketVariable, patienceVariable}, wake.Variables()...)

// secretVariables has the variables that hold a secret, or the name of the file that holds it.
var secretVariables = []string{tokenVariable, tokenVariable + "_FILE", webhookVariable, webhookVariable + "_FILE"}

// variables returns the environment variables that any of the commands reads.
func variables() []string {
	names := slices.Concat(settings.Variables(), bare, secretVariables, slices.Collect(maps.Values(flagVariables)))
	slices.Sort(names)
	return slices.Compact(names)
}

// public has the flags whose values may contain a URL with a password: the URL of the database, and what a job
// sends.
var public = []string{"database", "sql", "arg"}

// misplaced refuses a URL with a password in the place of another value. Names, for instance, are recorded, and
// other commands show them to other people.
func (c *cli) misplaced(cmd *cobra.Command, args []string) (err error) {
	const where = "; give the URL of the database with --database or " + settings.URLVariable
	for _, a := range args {
		if secret.HoldsURL(a) {
			return badInput("%s: found a URL with a password among the arguments%s", cmd.CommandPath(), where)
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(public, f.Name) && secret.HoldsURL(valueOf(f)) {
			names := strings.Join(append([]string{"--" + f.Name}, f.Annotations[envAnnotation]...), " or ")
			err = badInput("%s: found a URL with a password%s", names, where)
		}
	})
	for _, name := range []string{instanceVariable, marginVariable, allowVariable} {
		if value, _ := c.env(name); err == nil && secret.HoldsURL(value) {
			err = badInput("%s: found a URL with a password%s", name, where)
		}
	}
	return err
}

func valueOf(f *pflag.Flag) string {
	if o, ok := f.Value.(*onceFlag); ok {
		if d, ok := o.Value.(definitionFlag); ok {
			return strings.Join(d.given[f.Name], " ")
		}
	}
	return f.Value.String()
}

// emptyAnnotation marks a flag for which an empty text has a meaning of its own.
const emptyAnnotation = "dbjobs_empty"

// mayBeEmpty lets a flag have an empty text.
func mayBeEmpty(cmd *cobra.Command, flag string) {
	f := cmd.Flag(flag)
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[emptyAnnotation] = []string{"true"}
}

// emptied refuses a flag whose value is empty, as that of a shell's variable that is not set. Many flags narrow or delay what a
// command does, or give it an end: without their value, it would do the widest thing, at once or for ever.
func emptied(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if err != nil || f.Annotations[emptyAnnotation] != nil || !isEmpty(f) {
			return
		}
		instead := ", or leave it out"
		if no := cmd.Flag("no-" + f.Name); no != nil {
			instead = ", leave it out, or use --" + no.Name
		}
		err = badInput("--%s is empty; give it a value%s", f.Name, instead)
	})
	return err
}

// isEmpty reports whether a flag was given without a value, or with one among several that is empty. Package manifest judges the
// values that describe a definition.
func isEmpty(f *pflag.Flag) bool {
	v := f.Value
	if o, ok := v.(*onceFlag); ok {
		v = o.Value
	}
	switch v := v.(type) {
	case definitionFlag:
		return false
	case pflag.SliceValue: // a variable may have set it, too
		return f.Changed && len(v.GetSlice()) == 0 || slices.Contains(v.GetSlice(), "")
	}
	return f.Changed && v.String() == ""
}

// foreign matches variables that other programs set: Kubernetes for a service named dbjobs, and our tests.
var foreign = lazyregexp.New(`_SERVICE_(HOST|PORT)|_PORT(_|$)|^DBJOBS_(TEST_|PROVE$|CRASH$|MODEL_SEED$|REQUIRE_(RACE|IMPORTS)$)`)

// mistyped warns of variables that look like ours but that nothing reads. Otherwise, somebody notices much later
// that the setting has no effect.
func (c *cli) mistyped() {
	if c.examined {
		return
	}
	var known []string
	for _, entry := range c.environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(strings.ToUpper(name), "DBJOBS_") || strings.HasPrefix(name, host.SecretPrefix) || executor.IsFactVariable(name) || foreign.MatchString(name) {
			continue
		}
		if known == nil {
			for _, v := range variables() {
				known = append(known, strings.ToLower(v))
			}
		}
		if slices.Contains(known, strings.ToLower(name)) && name == strings.ToUpper(name) {
			continue
		}
		hint := "; see dbjobs --help"
		if n := nearest.To(name, known); n != "" {
			hint = "; did you mean " + strings.ToUpper(n) + "?"
		}
		c.tell(slog.LevelWarn, "dbjobs does not know the variable %s%s", name, hint)
	}
}

// shown returns a value from the user in the form in which a message may quote it.
func shown(value string) string {
	if secret.HoldsURL(value) {
		return "a URL with a password"
	}
	return fmt.Sprintf("%.80q", value)
}
