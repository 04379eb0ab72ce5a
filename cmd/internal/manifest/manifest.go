package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/cmd/internal/nearest"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Manifest is a jobs.yaml, read and checked, with all defaults filled in.
type Manifest struct {
	Name  string // the manifest owns what it defines: apply --prune may remove only that
	Named bool   // the name is in the file itself; many files are called jobs.yaml
	store.Definitions

	// Zoneless are the schedules and jobs, such as "job tidy", that name no zone for a cron text which means other times in
	// another zone.
	Zoneless []string

	elsewhere []reference // schedules that jobs name and this file does not define
	targets   []reference // of the host, that steps name
}

// reference is a place in the file that names a schedule, or a target.
type reference struct {
	name string
	hint string  // what may be meant, if the name is or looks like a rule
	at   Problem // without a text
}

// Options say how to read a manifest.
type Options struct {
	File string    // names the manifest in problems
	Name string    // name of the manifest, unless the file itself has one; "" means no owner
	Now  time.Time // start of rules that count from the creation of the schedule
}

// Decode reads one manifest. If the manifest has problems, the error is an *Error; any other error
// comes from the reader.
func Decode(r io.Reader, o Options) (*Manifest, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.File, err)
	}
	d := &decoder{file: o.File, length: len(data)}
	m := &Manifest{Name: o.Name}
	if len(data) > MaxBytes {
		d.problem(nil, "", "longer than %d bytes", MaxBytes)
	} else if crowded(data) {
		d.problem(nil, "", "may hold more than %d values; split it into several files", maxMarks)
	} else if root := d.document(data); root != nil {
		f := &file{decoder: d, m: m, now: o.Now}
		f.read(root)
	}
	if len(d.problems) > 0 {
		return nil, bounded(o.File, d.problems)
	}
	m.targets = d.targets
	return m, nil
}

// Elsewhere names the schedules that jobs use and the file does not define, each once.
func (m *Manifest) Elsewhere() []string {
	names := make([]string, len(m.elsewhere))
	for i, r := range m.elsewhere {
		names[i] = r.name
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Resolve checks the schedules that jobs name against those of the file and of the database.
func (m *Manifest) Resolve(inDatabase []string) error {
	names, known := make([]string, 0, len(m.Schedules)+len(inDatabase)), make(map[string]bool, len(inDatabase))
	for _, s := range m.Schedules {
		names = append(names, s.Name)
	}
	names = append(names, inDatabase...)
	for _, name := range inDatabase {
		known[name] = true
	}
	return unknown(m.elsewhere, known, func(name string) string { return "there is no schedule " + excerpt(name) }, "the schedules are ", names)
}

// NamesTargets reports whether a step names a target.
func (m *Manifest) NamesTargets() bool { return len(m.targets) > 0 }

// ResolveTargets checks the targets that steps name against those of a host's settings.
func (m *Manifest) ResolveTargets(settings string, names []string) error {
	known := make(map[string]bool, len(names))
	for _, name := range names {
		known[name] = true
	}
	return unknown(m.targets, known, func(name string) string {
		return fmt.Sprintf("the settings of this host (%s) have no target %s", settings, excerpt(name))
	},
		"the targets are ", names)
}

// unknown refuses references to what is not known. text says what is missing; names are those that could be meant.
func unknown(list []reference, known map[string]bool, text func(name string) string, before string, names []string) error {
	var problems []Problem
	for _, r := range list {
		if known[r.name] {
			continue
		}
		r.at.Text = text(r.name)
		if r.hint != "" {
			r.at.Text += r.hint
		} else if n := nearest.To(r.name, names); n != "" {
			r.at.Text += fmt.Sprintf("; did you mean %s?", n)
		} else if len(names) > 0 {
			r.at.Text += "; " + before + strings.Join(names[:min(20, len(names))], ", ")
		}
		problems = append(problems, r.at)
	}
	if len(problems) > 0 {
		return bounded(problems[0].File, problems)
	}
	return nil
}

// document parses the only document of the file.
func (d *decoder) document(data []byte) *yaml.Node {
	if at := invalidUTF8(data); at >= 0 {
		line := 1 + bytes.Count(data[:at], []byte("\n"))
		column := at - bytes.LastIndexByte(data[:at], '\n')
		d.problems = append(d.problems, Problem{File: d.file, Line: line, Column: column, Text: fmt.Sprintf("found the byte %#x, which is not UTF-8", data[at])})
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		d.syntax(data, err)
		return nil
	}
	var doc, more yaml.Node
	if err := loader.Load(&doc); err != nil && !errors.Is(err, io.EOF) {
		d.syntax(data, err)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		if !d.ofHost {
			d.problem(nil, "", "the file is empty; it needs at least jobs: or schedules:")
		}
		return nil
	}
	switch err := loader.Load(&more); {
	case err == nil:
		d.problem(&more, "", "a second document begins here; a file has only one")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(data, err)
		return nil
	}
	return doc.Content[0]
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// file is one manifest being read.
type file struct {
	*decoder
	m        *Manifest
	now      time.Time
	zone     string // of rules without a zone; empty: the file names none, and they are read in UTC
	defaults store.Job
	names    map[string]bool // of the schedules read so far
}

func (f *file) read(root *yaml.Node) {
	var schedules, jobs, groups, defaults, zone *yaml.Node
	hold := func(into **yaml.Node) reading {
		return func(_ *decoder, n *yaml.Node, _ string) { *into = n }
	}
	fields := []field{
		{"manifest", func(d *decoder, n *yaml.Node, path string) {
			text(&f.m.Name)(d, n, path)
			f.m.Named = f.m.Name != ""
		}},
		{"zone", hold(&zone)}, {"defaults", hold(&defaults)},
		{"groups", hold(&groups)}, {"schedules", hold(&schedules)}, {"jobs", hold(&jobs)},
	}
	f.mapping(withoutExtensions(root), "", fields)
	if zone != nil {
		f.readZone(&f.zone, zone, "zone")
	}
	if defaults != nil {
		f.mapping(defaults, "defaults", policies(&f.defaults, true))
	}
	f.readGroups(groups)
	f.readSchedules(schedules)
	if jobs != nil {
		for _, p := range f.pairs(jobs, "jobs", "a mapping of jobs by name") {
			f.readJob(p)
		}
	}
}

// withoutExtensions returns the mapping without its keys that begin with x-, which belong to the
// author of the file.
func withoutExtensions(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return n
	}
	kept := *n
	kept.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !strings.HasPrefix(n.Content[i].Value, "x-") {
			kept.Content = append(kept.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &kept
}

func (f *file) readZone(into *string, n *yaml.Node, path string) {
	zone := ""
	text(&zone)(f.decoder, n, path)
	if zone == "" {
		return
	}
	// This rule is valid in any zone, so an error is one about the zone.
	if _, err := rules.Parse("every 1h", rules.Defaults{Zone: zone, Start: f.now}); err != nil {
		f.problem(n, path, "found %s: %v", excerpt(zone), err)
		return
	}
	*into = zone
}

// NameOf is the name of a manifest whose file has no name in it: the file's name without its
// extension.
func NameOf(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
