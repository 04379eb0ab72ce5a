package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/bucket"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

func (c *cli) apply() *cobra.Command {
	var paths []string
	var o store.ApplyOptions
	var isStrict bool
	cmd := &cobra.Command{
		Use:   "apply -f jobs.yaml",
		Short: "Make the jobs and schedules in the database match a manifest",
		Long: `Creates and changes jobs and schedules so that they match the manifest, all of them or none, and prints the
changes. Applying the same file again changes nothing.

A job or schedule that was in the manifest earlier and is not any more stays, and is listed. --prune removes it,
unless another job runs after it, or it belongs to an owner of whom the file has no job. For --prune the file has to
contain its own name: manifest: NAME. Without that line, a manifest has the name of its first file, without the
extension, or of its folder. Definitions that belong to another manifest are not changed, unless --take-ownership is
given.

Several files, those of a folder, and those that a file names under include:, are one manifest. s3://BUCKET/KEY and
gs://BUCKET/KEY are files, too: they are read with the credentials of this process, and name no other files. ${env:NAME} in a value
is the variable of that name, and ${env:NAME:-text} has a text for the case that it is empty; $${env:NAME} stays as
${env:NAME}. The database stores the value: for a password, use ${secret:NAME}.`,
		Example: `  dbjobs apply -f jobs.yaml --dry-run
  dbjobs apply -f common.yaml -f jobs.d
  dbjobs apply -f jobs.yaml --prune --reason "release 4.2"`,
		Args: positional(),
	}
	c.reads(cmd, &paths, &o)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only print the changes; write nothing")
	strict(cmd, &isStrict, "refuse definitions that have warnings, before anything is written")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		m, err := c.manifest(cmd, paths, &o)
		if err != nil {
			return err
		}
		if isStrict {
			if err := c.strictly(cmd, m, o); err != nil {
				return err
			}
		}
		changes, w, err := c.change(cmd, m, o)
		if err != nil {
			return err
		}
		warnings := c.warnings(m, changes, w)
		c.warn(warnings)
		a := report.Applied{Warnings: warnings, Manifest: m.Name, DryRun: o.DryRun, Changes: report.List(changes), FirstRuns: report.List(w.firstRuns(m, changes))}
		return c.print(a, func() error { return report.Changes(c.stdout, a) })
	})
	return c.prints(c.authored(cmd))
}

// reads adds the flags that name a manifest, and those that say how it changes the database.
func (c *cli) reads(cmd *cobra.Command, paths *[]string, o *store.ApplyOptions) {
	cmd.Flags().StringArrayVarP(paths, "file", "f", nil, "manifest to read, or a folder of such files, or an object of S3 or GCS; - means standard input; may be given several times")
	cmd.Flags().BoolVar(&o.Prune, "prune", false, "remove definitions that belong to this manifest and are no longer in it")
	cmd.Flags().BoolVar(&o.TakeOwnership, "take-ownership", false, "also change definitions that belong to another manifest, and take them over")
}

// manifest reads the manifest that is brought in, and looks up the names that it uses but does not define.
func (c *cli) manifest(cmd *cobra.Command, paths []string, o *store.ApplyOptions) (*manifest.Manifest, error) {
	m, err := c.resolved(cmd, paths)
	if err != nil {
		return nil, err
	}
	if o.Prune && !m.Named { // a jobs.yaml in another folder may own definitions by the same name
		problem := "--prune needs a manifest that contains its own name; add the line manifest: " + cmp.Or(m.Name, "NAME")
		if m.Name != "" {
			problem += ", the name under which its jobs are there now"
		}
		return nil, badInput("%s", problem)
	}
	o.Manifest = m.Name
	return m, nil
}

// resolved reads files, and looks up the names of these kinds that they use but do not define. All mistakes of the
// files are reported together. If the names cannot be looked up, that is reported only if there is no other mistake.
func (c *cli) resolved(cmd *cobra.Command, paths []string, kinds ...string) (*manifest.Manifest, error) {
	m, wrong := c.readManifest(cmd, paths)
	if m == nil {
		return nil, wrong
	}
	err := c.resolve(cmd, m, kinds...)
	if _, more := errors.AsType[*manifest.Error](err); wrong != nil && !more {
		return nil, wrong
	}
	return m, err
}

// readManifest reads the files that the command line names, and the files of folders. One file may be standard
// input. If the files have mistakes, the manifest has what could be read.
func (c *cli) readManifest(cmd *cobra.Command, paths []string) (*manifest.Manifest, error) {
	if len(paths) == 0 {
		return nil, badInput("%s needs a manifest; give it with -f jobs.yaml, or -f - for standard input", cmd.Name())
	}
	var inputs []manifest.Input
	given := map[string]bool{}
	for _, path := range paths {
		list, err := c.inputs(cmd.Context(), path)
		if err != nil {
			return nil, err
		}
		for _, in := range list {
			if given[filepath.Clean(in.Path)] {
				return nil, badInput("%s is given twice; give it once", in.Path)
			}
			given[filepath.Clean(in.Path)] = true
		}
		inputs = append(inputs, list...)
	}
	m, err := manifest.Read(inputs, manifest.Options{Name: manifest.NameOf(paths[0]), Now: time.Now(), Env: c.variable, Alone: c.sealed,
		Open: opener(cmd.Context())})
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return nil, &usageError{problem: e.Error()}
	}
	return m, err
}

// variable looks up an environment variable that a file names. If the variable has the name of a secret, no
// message shows its value.
func (c *cli) variable(name string) (string, bool) {
	if c.sealed { // the credentials of the host are among the variables
		return "", false
	}
	value, set := c.env(name)
	if manifest.IsSecret(name) {
		c.secrets.Add(value)
	}
	return value, set
}

// bucketVariable names the objects from which manifests may be read. Without it, all objects that the
// credentials allow may be read; a caller from outside may then read none.
const bucketVariable = "DBJOBS_MANIFESTS"

// inputs returns the files, or the object, that a path means.
func (c *cli) inputs(ctx context.Context, path string) ([]manifest.Input, error) {
	switch {
	case path == "-":
		return []manifest.Input{{Path: "standard input", In: interruptible{ctx, c.stdin}}}, nil
	case bucket.Is(path):
		return c.object(ctx, path)
	case c.sealed:
		return nil, badInput("found %.80q, want an object: s3://BUCKET/KEY or gs://BUCKET/KEY", path)
	}
	info, err := os.Stat(path)
	list := []manifest.Input{{Path: path}}
	if err == nil && info.IsDir() {
		list, err = manifest.Folder(path)
	}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		e.Op = "open"
	}
	if err != nil {
		return nil, &usageError{problem: err.Error()}
	}
	return list, nil
}

// object reads a manifest from a bucket, if that is allowed. Such a manifest may not name other files, because
// there are none beside it.
func (c *cli) object(ctx context.Context, path string) ([]manifest.Input, error) {
	o, err := bucket.Parse(path)
	if err != nil {
		return nil, &usageError{problem: err.Error()}
	}
	if allowed, set := c.env(bucketVariable); (set || c.sealed) && !bucket.Allowed(path, allowed) {
		return nil, badInput("%s may not be read here; add its URL to %s, or the URL of a folder above it that ends with a slash", path, bucketVariable)
	}
	text, err := bucket.Reader{Env: c.env, Secrets: c.secrets, Now: time.Now}.Read(ctx, o, manifest.MaxBytesAlone+1)
	return []manifest.Input{{Path: path, In: bytes.NewReader(text), Alone: true}}, err
}

// resolve looks up what the manifest names but does not define, before anything is created: definitions of the
// database, and targets of the host. If this host has no targets, other hosts may execute the jobs: then a
// wrong name fails the run.
func (c *cli) resolve(cmd *cobra.Command, m *manifest.Manifest, kinds ...string) error {
	if len(m.References(kinds...)) == 0 {
		return c.resolveIn(cmd.Context(), nil, m, kinds...)
	}
	if err := c.find(cmd.Context()); err != nil {
		return err
	}
	if c.db.Embedded && !c.db.Exists() {
		return c.resolveIn(cmd.Context(), nil, m, kinds...)
	}
	s, err := c.open(cmd, use)
	if err != nil {
		return err
	}
	defer c.close(s)
	return c.resolveIn(cmd.Context(), s, m, kinds...)
}

// resolveIn is resolve for a database that is open. Without one, no definition is known.
func (c *cli) resolveIn(ctx context.Context, s *store.Store, m *manifest.Manifest, kinds ...string) error {
	known, host := &store.Known{}, manifest.Targets{}
	if m.NamesTargets() {
		set, err := c.host()
		if err != nil {
			return err
		}
		host.From = set.From
		for _, o := range set.Targets {
			host.Names = append(host.Names, o.Name)
		}
	}
	if s != nil {
		var err error
		if known, err = s.Known(ctx, m.References(kinds...)); err != nil {
			return err
		}
	}
	return m.Resolve(known, host, kinds...)
}

// change writes definitions. It creates the embedded database if it is missing; a dry run creates
// nothing. The world is as it was just before.
func (c *cli) change(cmd *cobra.Command, m *manifest.Manifest, o store.ApplyOptions) (changes []store.Change, w world, err error) {
	a := begin
	if o.DryRun {
		a = use
	}
	s, err := c.open(cmd, a)
	if err != nil {
		return nil, w, err
	}
	defer c.close(s)
	if w, err = readWorld(cmd.Context(), s, m); err != nil { // not later: then the change would be done
		return nil, w, err
	}
	p, err := beforeDays(cmd.Context(), s, m)
	if err != nil {
		return nil, w, err
	}
	line, end := c.live()
	defer end()
	if line != nil {
		o.Progress = func(done, of int) {
			if done < of {
				line.show("%s: %s of %s jobs", cmd.Name(), thousands(done), thousands(of))
			}
		}
	}
	o.Author, o.Start, o.First = c.author(s), decide.Start, decide.First
	if changes, err = s.Apply(cmd.Context(), m.Definitions, o); err != nil {
		return changes, w, m.Place(err)
	}
	if p != nil {
		w.starved = p.starved(changes)
	}
	if !o.DryRun {
		c.ring(cmd.Context(), s)
	}
	return changes, w, nil
}

// already adds to ErrExists a hint that says what to do.
func already(err error, what, name string) error {
	if errors.Is(err, store.ErrExists) {
		return &usageError{problem: what + " " + name + " already exists", hint: "change it with `dbjobs " + what + " alter " + store.Argument(name) + "`, or remove it first"}
	}
	return err
}
