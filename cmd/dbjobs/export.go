package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/store"
)

func (c *cli) export() *cobra.Command {
	var o exportOptions
	var feed feedOptions
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the definitions in the database as a manifest, or as a calendar feed",
		Long: `Prints jobs and schedules as a manifest. Applying that manifest changes nothing. Definitions that belong to
different manifests cannot be in one such file: choose one with --manifest, or those without a manifest with --manifest= .

--all prints everything as one file. It is for another database, and for keeping: it names no manifest, so what it defines
there belongs to no manifest until a file of yours defines it, too. Without --all, a group that jobs of another manifest use
is left out: it belongs to none. Where two owners have a job of one name, --owner writes a file for each owner: its jobs,
and all schedules. With -o, a file that is there is replaced as a whole, or not at all.

A definition that no apply would accept, such as that of a job whose step plain SQL has spoiled, or whose schedule it has
deleted, is left out, and so is what needs it: a line on standard error names it and says what to do, and the exit code is 3.
Do not apply such a file with --prune.

--ical writes a calendar feed instead, to which a calendar program can subscribe: the times of the schedules, in their
zones. Schedules that run more than 24 times a day are left out, unless --job names their job.`,
		Example: `  dbjobs export > jobs.yaml
  dbjobs export --manifest jobs
  dbjobs export --all -o everything.yaml
  dbjobs export --ical -o jobs.ics`,
		Args: positional(),
	}
	cmd.Flags().StringVar(&o.manifest, "manifest", "", "only definitions that belong to this manifest")
	mayBeEmpty(cmd, "manifest")
	cmd.Flags().BoolVar(&o.all, "all", false, "the definitions of all manifests, as one file that names no manifest")
	cmd.Flags().StringVar(&o.owner, "owner", "", "only jobs of this owner")
	feed.flags(cmd)
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, cmd *cobra.Command, _ []string) error {
		if err := feed.check(cmd); err != nil {
			return err
		}
		if feed.on {
			return c.exportFeed(ctx, s, feed)
		}
		if o.chosen = cmd.Flags().Changed("manifest"); o.chosen && o.all {
			return badInput("--all does not go together with --manifest; give one of them")
		}
		d, name, err := exported(ctx, s, o)
		if err != nil {
			return err
		}
		login, err := s.Login(ctx)
		if err != nil {
			return err
		}
		out, err := manifest.TakeUnreadable(&d, func(names []store.Reference) (*store.Known, error) { return s.Known(ctx, names) })
		if err != nil {
			return err
		}
		var left []error
		for _, u := range out {
			advice := "put its rows right by SQL, or apply a file that has it"
			if u.Follows {
				advice = "it needs that one"
			}
			left = append(left, fmt.Errorf("%w: %s %s: %s; %s", errLeftOut, u.Kind, u.Name, u.Problem, advice))
		}
		_, err = c.writeTo(feed.path, func(w io.Writer) error { return manifest.Encode(w, name, d, login) })
		return errors.Join(append(left, err)...)
	})
	return cmd
}

// exportOptions say which definitions become a file.
type exportOptions struct {
	manifest string
	chosen   bool // manifest was given, perhaps as an empty text
	all      bool
	owner    string // empty: all
}

// exported returns the definitions of a file, and the name of its manifest.
func exported(ctx context.Context, s *store.Store, o exportOptions) (d store.Definitions, name string, err error) {
	d, owners, err := definitions(ctx, s)
	if err != nil {
		return d, "", err
	}
	name = o.manifest
	switch {
	case o.chosen && !slices.Contains(owners, name):
		return d, "", badInput("no definition belongs to the manifest %q; there are %s", name, manifests(owners))
	case !o.chosen && !o.all && len(owners) > 1:
		return d, "", badInput("the definitions belong to different manifests: %s; choose one with --manifest, or print everything as one file with --all", manifests(owners))
	case !o.chosen && !o.all && len(owners) == 1:
		name = owners[0]
	}
	elsewhere := map[string]bool{} // groups that jobs of other manifests use
	if !o.all {
		for i := range d.Jobs {
			if j := &d.Jobs[i]; j.Manifest != name && j.Manifest != "" {
				elsewhere[j.Group] = true
			}
		}
		d.Jobs = slices.DeleteFunc(d.Jobs, func(j store.Job) bool { return j.Manifest != name })
		d.Schedules = slices.DeleteFunc(d.Schedules, func(s store.Schedule) bool { return s.Manifest != name })
		d.Calendars = slices.DeleteFunc(d.Calendars, func(c store.Calendar) bool { return c.Manifest != name })
	}
	if o.owner != "" {
		d.Jobs = slices.DeleteFunc(d.Jobs, func(j store.Job) bool { return j.Owner != o.owner })
		if len(d.Jobs) == 0 {
			return d, "", badInput("the owner %q has none of these jobs", o.owner)
		}
	}
	if err := namedOnce(d.Jobs); err != nil {
		return d, "", err
	}
	groups, err := s.Groups(ctx)
	for _, g := range groups { // of one file, only those that its jobs need, and no other file: two files would change a cap in turn
		if o.all || !elsewhere[g.Name] && slices.ContainsFunc(d.Jobs, func(j store.Job) bool { return j.Group == g.Name }) {
			d.Groups = append(d.Groups, g)
		}
	}
	return d, name, err
}

// namedOnce refuses jobs of different owners that have the same name: a file defines a name only once.
func namedOnce(jobs []store.Job) error {
	known := map[string]string{}
	for i := range jobs {
		j := &jobs[i]
		if other, ok := known[j.Name]; ok {
			return badInput("the jobs %s and %s have the same name, and one file cannot define both; export the jobs of each owner with --owner", other, j.FullName())
		}
		known[j.Name] = j.FullName()
	}
	return nil
}

// definitions reads all jobs and schedules, and the names of the manifests that own them.
func definitions(ctx context.Context, s *store.Store) (d store.Definitions, owners []string, err error) {
	jobs, err := s.Jobs(ctx, store.JobFilter{})
	if err != nil {
		return d, nil, err
	}
	for _, j := range jobs {
		d.Jobs = append(d.Jobs, j.Job)
		owners = append(owners, j.Manifest)
	}
	if d.Schedules, err = s.Schedules(ctx); err != nil {
		return d, nil, err
	}
	for _, sc := range d.Schedules {
		owners = append(owners, sc.Manifest)
	}
	if d.Calendars, err = s.Calendars(ctx); err != nil {
		return d, nil, err
	}
	for _, cal := range d.Calendars {
		owners = append(owners, cal.Manifest)
	}
	slices.Sort(owners)
	return d, slices.Compact(owners), nil
}

func manifests(names []string) string {
	shown := make([]string, len(names))
	for i, n := range names {
		if shown[i] = n; n == "" {
			shown[i] = `"" (none)`
		}
	}
	if len(shown) == 0 {
		return "none"
	}
	return strings.Join(shown, ", ")
}
