package manifest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Manifest is a jobs.yaml, read and checked, with all defaults filled in.
type Manifest struct {
	Name  string // the manifest owns what it defines: apply --prune may remove only that
	Named bool   // the name is in the file itself; many files are called jobs.yaml
	store.Definitions

	// Shared has the schedules of the database that the manifest names and does not define. Resolve fills it.
	Shared map[string]store.Schedule

	// Zoneless has the schedules and jobs, such as "job tidy", that name no zone although their rule means
	// other times in another zone.
	Zoneless []string
	// Chosen has the schedules and jobs that say what happens to a wall time at a clock change, such as "job
	// tidy ambiguous". It includes those that state the default.
	Chosen []string

	// Variables are the places in the file that named variables of the environment.
	Variables []Variable
	// Swallowed are the places in the file where a comment takes more of a step than its author sees.
	Swallowed []Swallowed

	problems   []Problem
	references []reference        // names that the manifest uses and does not define
	places     map[string]Problem // of definitions and of the names that they use, by path
	rulePlaces []Problem          // of rules that the database may refuse
	flags      []Flag             // of the command that stands in place of a file
}

// Options say how to read a manifest.
type Options struct {
	Name string    // name of the manifest, unless a file itself has one; "" means no owner
	Now  time.Time // start of rules that count from the creation of the schedule
	// Alone forbids the manifest to name other files: its author may read no file of this machine.
	Alone bool

	// Env looks up a variable that a file names as ${env:NAME}. If it is nil, such a text stays as it is.
	Env func(name string) (string, bool)

	// Open opens a manifest, or a file of days. If it is nil, os.Open does.
	Open func(path string) (io.ReadCloser, error)
}

// document parses the only document of the file.
func (d *decoder) document(data []byte) *yaml.Node {
	if at := invalidUTF8(data); at >= 0 {
		line := 1 + bytes.Count(data[:at], []byte("\n"))
		column := at - bytes.LastIndexByte(data[:at], '\n')
		text := fmt.Sprintf("found the byte %#x, which is not UTF-8", data[at])
		if at == 0 && len(data) > 1 && data[0]^data[1] == 1 && data[0] >= 0xfe { // as > of PowerShell writes it
			text = "the file is UTF-16; save it as UTF-8"
		}
		d.problems = append(d.problems, Problem{File: d.file, Line: line, Column: column, Text: text})
		return nil
	}
	data = Paired(data)
	d.source = data
	if len(data) >= manyBytes {
		if root := parseInParts(data, runtime.GOMAXPROCS(0)); root != nil {
			return root
		}
	}
	root, more, err := parse(data)
	switch {
	case err != nil:
		d.syntax(data, err)
		return nil
	case more != nil:
		d.problem(more, "", "a second document begins here; a file has only one")
		return nil
	case root == nil && !d.ofHost:
		d.problem(nil, "", "the file is empty; it needs at least jobs: or schedules:")
	}
	return root
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
	open     func(path string) (io.ReadCloser, error)
	zone     string // zone of rules that have none; empty: the file names no zone, and the rules are read in UTC
	defaults store.Job
	job      *jobReading         // nil: no job was read yet
	names    map[string]bool     // of the schedules read so far
	usual    map[string]Problem  // where the defaults are, by path below defaults
	defined  map[string]Problem  // where definitions are; nil: there are no others
	rules    map[ruleText]parsed // the rules that were read, and the answer of parseRule for each

	calendars map[string]*rules.Calendar // of the calendars read so far; any other is looked up in the database

	groups, schedules, jobs *yaml.Node // not read yet
	calendarsNode           *yaml.Node
	from                    *file      // the file that includes this one
	at                      *yaml.Node // the place of that include
	real                    string     // the path by which the file is known
	alone                   bool       // it may name no other files
}

// readTop reads the top level of the file, and keeps its groups, schedules and jobs. It returns what the file includes.
func (f *file) readTop(r *reader, root *yaml.Node) (include *yaml.Node) {
	var defaults, zone *yaml.Node
	fields := []field{
		{"manifest", f.readName(r)},
		{"zone", holds(&zone)}, {"defaults", holds(&defaults)},
		{"groups", holds(&f.groups)}, {"calendars", holds(&f.calendarsNode)}, {"schedules", holds(&f.schedules)}, {"jobs", holds(&f.jobs)}, {"include", holds(&include)},
	}
	f.mapping(withoutExtensions(root), "", fields)
	if zone != nil {
		f.readZone(&f.zone, zone, "zone")
	}
	if defaults != nil {
		f.readDefaults(defaults)
	}
	return include
}

// readDefaults reads the policies of jobs that give none, and keeps their places.
func (f *file) readDefaults(n *yaml.Node) {
	f.places = map[string]*yaml.Node{}
	f.mapping(n, "defaults", policies(&f.defaults, true))
	usual := maps.Clone(f.usual)
	if usual == nil {
		usual = map[string]Problem{}
	}
	for path, at := range f.places {
		usual[strings.TrimPrefix(path, "defaults.")] = f.place(at, path)
	}
	f.usual = usual
}

func (f *file) readJobs(n *yaml.Node) {
	if n == nil {
		return
	}
	jobs := f.pairs(n, "jobs", "a mapping of jobs by name")
	if f.readInParts(jobs) {
		return
	}
	f.m.Jobs = slices.Grow(f.m.Jobs, len(jobs))
	for _, p := range jobs {
		if f.once(p.key, join("jobs", p.key.Value)) {
			f.readJob(p)
		}
	}
}

// withoutExtensions returns the mapping without the keys that begin with x-. These belong to the author of the
// file.
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
	// This rule is valid in any zone, so an error can only be about the zone.
	if _, err := rules.Parse("every 1h", rules.Defaults{Zone: zone, Start: f.now}); err != nil {
		f.problem(n, path, "found %s: %v", excerpt(zone), err)
		return
	}
	*into = zone
}

// NameOf returns the name of a manifest whose file does not contain one: the name of the file without its
// extension, or the whole name of its folder, by whichever path it is given. Standard input has none.
func NameOf(path string) string {
	if path == "-" {
		return ""
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if whole, err := filepath.Abs(path); err == nil {
			return filepath.Base(whole)
		}
	}
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
