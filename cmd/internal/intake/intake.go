package intake

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/store"
)

// Item is one line or object of the source, and what was made of it.
type Item struct {
	Place  string   `json:"place"`            // such as "line 12"
	Source string   `json:"source"`           // as it stands there
	Job    string   `json:"job,omitempty"`    // the name of the job that was made of it
	Notes  []string `json:"notes,omitempty"`  // how its meaning changes, and what to do
	Reason string   `json:"reason,omitempty"` // why it is not imported, and what to do

	Definition *store.Job `json:"-"` // nil: it is not imported
}

// Result is all that was found in a source.
type Result struct {
	Source string   `json:"source"`         // what was read
	Zone   string   `json:"zone,omitempty"` // of most rules
	Head   []string `json:"remarks"`        // remarks that concern all jobs
	Items  []Item   `json:"items"`
	Rest   string   `json:"rest,omitempty"` // what else the source has: "2 settings, 9 comments and blank lines"

	Databases []string         `json:"-"` // those in which statements of the source run; they may be there several times
	Hooks     []store.Job      `json:"-"` // jobs that Items name for their events
	Schedules []store.Schedule `json:"-"` // those that Items name, in the order of the Items; each is of one job
}

// Imported counts the items that became jobs.
func (r *Result) Imported() (n int) {
	for i := range r.Items {
		if r.Items[i].Definition != nil {
			n++
		}
	}
	return n
}

// Left returns the items that did not become jobs.
func (r *Result) Left() (list []Item) {
	for _, item := range r.Items {
		if item.Definition == nil {
			list = append(list, item)
		}
	}
	return list
}

// prefix puts a text before the names of all jobs and schedules, because two sources may have the same names.
func (r *Result) prefix(text string) {
	for i := range r.Schedules {
		r.Schedules[i].Name = text + r.Schedules[i].Name
	}
	hook := map[string]string{}
	for i := range r.Hooks {
		name := r.Hooks[i].Name
		r.Hooks[i].Name = text + name
		hook[name] = text + name
	}
	for _, item := range r.Items {
		j := item.Definition
		if j == nil {
			continue
		}
		j.Name = text + j.Name
		for k := range j.Schedules {
			j.Schedules[k] = text + j.Schedules[k]
		}
		for _, to := range j.On.All() {
			*to = cmp.Or(hook[*to], *to)
		}
	}
}

// Finish names the jobs and schedules, each with the prefix, disables the jobs, and leaves out jobs that a manifest
// cannot contain. The caller calls it once, before Write.
func (r *Result) Finish(now time.Time, prefix string) {
	if prefix != "" {
		r.prefix(prefix)
	}
	jobs, schedules := newNames(), newNames()
	for i := range r.Hooks {
		jobs.taken[r.Hooks[i].Name] = true
	}
	for i, next := 0, 0; i < len(r.Items); i++ {
		item := &r.Items[i]
		j := item.Definition
		if j == nil {
			continue
		}
		first := j.Name
		j.Name = jobs.unique(first)
		for k, name := range j.Schedules { // their names begin with that of the job
			j.Schedules[k] = schedules.unique(j.Name + strings.TrimPrefix(name, first))
			schedules.taken[j.Schedules[k]] = true
			r.Schedules[next].Name = j.Schedules[k]
			next++
		}
		j.Disabled = true
		if err := r.check(*j, now); err != nil {
			item.Definition = nil
			item.Reason = fmt.Sprintf("dbjobs cannot have it as a job: %s; write it by hand", err)
			continue
		}
		jobs.taken[j.Name], item.Job = true, j.Name
	}
}

// check writes one job and reads it back, so that no job of the result is refused later. It does not look up jobs
// that the job names.
func (r *Result) check(j store.Job, now time.Time) error {
	var b bytes.Buffer
	if err := manifest.EncodeNoted(&b, store.Definitions{Jobs: []store.Job{j}}, manifest.Notes{Zone: r.Zone}); err != nil {
		return err
	}
	unset := func(string) (string, bool) { return "", false } // a text with ${env:NAME} would depend on the user who applies it
	_, err := manifest.Read([]manifest.Input{{Path: "it", In: &b}}, manifest.Options{Now: now, Env: unset})
	if m, ok := errors.AsType[*manifest.Error](err); ok && len(m.Problems) > 0 {
		return fmt.Errorf("%s", m.Problems[0].Text)
	}
	return err
}

// Write writes the manifest, with the remarks beside each job.
func (r *Result) Write(w io.Writer) error {
	n := manifest.Notes{Zone: r.Zone, Head: slices.Clone(r.Head), Jobs: map[string][]string{}}
	n.Head = append([]string{"Imported from " + r.Source + "."}, n.Head...)
	d := store.Definitions{Schedules: r.used()}
	for _, item := range r.Items {
		if item.Definition == nil {
			continue
		}
		lines := source(item)
		for _, note := range item.Notes {
			lines = append(lines, wrap("- "+note, "  ")...)
		}
		d.Jobs, n.Jobs[item.Job] = append(d.Jobs, *item.Definition), lines
	}
	for _, j := range r.Hooks {
		n.Jobs[j.Name] = []string{"It runs only when an event occurs for which a job names it under on."}
	}
	d.Jobs = append(d.Jobs, r.Hooks...)
	var head []string
	for _, text := range n.Head {
		head = append(head, wrap(text, "")...)
	}
	n.Head = head
	if left := r.Left(); len(left) > 0 {
		n.Foot = append(n.Foot, "Not imported:")
		for _, item := range left {
			n.Foot = append(n.Foot, source(item)...)
			n.Foot = append(n.Foot, wrap("- "+item.Reason, "  ")...)
		}
	}
	return manifest.EncodeNoted(w, d, n)
}

// used returns the schedules of the jobs that were imported.
func (r *Result) used() (list []store.Schedule) {
	named := map[string]bool{}
	for _, item := range r.Items {
		if item.Definition != nil {
			for _, name := range item.Definition.Schedules {
				named[name] = true
			}
		}
	}
	for _, s := range r.Schedules {
		if named[s.Name] {
			list = append(list, s)
		}
	}
	return list
}

// source returns the lines of an item as they stand in its source.
func source(item Item) []string {
	lines := strings.Split(strings.TrimRight(item.Source, "\n"), "\n")
	lines[0] = strings.TrimSpace(item.Place + ": " + lines[0])
	return lines
}

// wrap breaks a remark into lines of at most 100 characters. Each line after the first begins with indent.
func wrap(text, indent string) (lines []string) {
	const most = 96
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > most:
			lines, line = append(lines, line), indent+word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// maxSlug is the length at which a name made from a sentence is cut.
const maxSlug = 40

// Slug makes a name from a text: its letters and digits in lower case, with a dash between words. The name is
// empty if the text has none.
func Slug(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r == utf8.RuneError:
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		case r == '\'':
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.Trim(b.String(), "-")
	for len(name) > maxSlug {
		cut := strings.LastIndexByte(name[:maxSlug+1], '-')
		if cut <= 0 {
			cut = maxSlug
			for !utf8.RuneStart(name[cut]) {
				cut--
			}
		}
		name = name[:cut]
	}
	return name
}

// names are those of jobs, or of schedules.
type names struct {
	taken map[string]bool
	last  map[string]int // how many of a name are taken at least, from the first on
}

func newNames() *names { return &names{map[string]bool{}, map[string]int{}} }

// unique adds a number to a name that is already taken. Many jobs may have one name, so the number goes on from the last.
func (l *names) unique(name string) string {
	first := cmp.Or(name, "job")
	for n := l.last[first]; ; n++ {
		if name = numbered(first, n); !l.taken[name] {
			l.last[first] = n
			return name
		}
	}
}

// numbered returns a name with its number. The first of a name has none.
func numbered(name string, n int) string {
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, n+1)
}
