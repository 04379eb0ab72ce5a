package manifest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
)

// entry is a key of a job: a policy, or a section of policies, such as keep with runs and age.
type entry struct {
	key   string
	inner []entry
	store.Policy
}

// entries are the keys of all policies, in their order.
var entries = func() (all []entry) {
	for _, p := range store.Policies() {
		outer, key, nested := strings.Cut(p.Key, ".")
		if !nested {
			all = append(all, entry{key: outer, Policy: p})
			continue
		}
		if last := len(all) - 1; all[last].key != outer {
			all = append(all, entry{key: outer, Policy: store.Policy{Shared: p.Shared}})
		}
		at := &all[len(all)-1]
		at.inner = append(at.inner, entry{key: key, Policy: p})
	}
	return all
}()

// section returns the entry of a key that has other keys below it.
func section(key string) entry {
	return entries[slices.IndexFunc(entries, func(e entry) bool { return e.key == key })]
}

// namedFirst has the keys that come first in the list of allowed keys.
var namedFirst = []string{"owner", "description", "disabled", "tags", "queue", "group", "after", "on_startup"}

// policies returns the keys that may also stand under defaults, if shared is set, or else the keys that make
// sense only for a single job.
func policies(j *store.Job, shared bool) (fields []field) {
	for _, e := range entries {
		if e.Shared == shared {
			fields = append(fields, field{e.key, e.read(j)})
		}
	}
	place := func(f field) int {
		if i := slices.Index(namedFirst, f.key); i >= 0 {
			return i
		}
		return len(namedFirst)
	}
	slices.SortStableFunc(fields, func(x, y field) int { return cmp.Compare(place(x), place(y)) })
	return fields
}

// read reads the value of the key into the job.
func (e entry) read(j *store.Job) reading {
	if e.inner != nil {
		return func(d *decoder, n *yaml.Node, path string) {
			if e.key == "retry" && followed(n).Kind == yaml.ScalarNode {
				opened(&j.Retry.Attempts, retries)(d, n, path)
				return
			}
			fields := make([]field, len(e.inner))
			for i, in := range e.inner {
				fields[i] = field{in.key, in.read(j)}
			}
			if short := e.short(); short != nil {
				e.readWhole(d, n, path, j, short, fields)
				return
			}
			d.mapping(n, path, fields)
		}
	}
	switch into := e.Of(j).(type) {
	case *string:
		if e.Allowed != nil {
			return choice(into, e.Allowed...)
		}
		return text(into)
	case *[]string:
		return texts(into)
	case *[]store.After:
		return afters(into)
	case *int:
		return number(into, e.Least, cmp.Or(e.Most, math.MaxInt32))
	case *int64:
		return number(into, e.Least, cmp.Or(e.Most, math.MaxInt64))
	case *bool:
		return boolean(into)
	case *time.Time:
		return instant(into)
	case *store.Duration:
		return duration(into, e.Least == 0)
	case **store.Duration:
		return opened(into, func(v *store.Duration) reading { return duration(v, true) })
	case **store.Attempts:
		return opened(into, tries)
	case **int:
		return opened(into, func(v *int) reading { return number(v, e.Least, e.Most) })
	}
	panic(fmt.Sprintf("manifest: policy %s has an unknown type", e.Key))
}

// short returns the key that the short form of a section sets, or nil if it has no short form.
func (e entry) short() *entry {
	if i := slices.IndexFunc(e.inner, func(in entry) bool { return in.Short }); i >= 0 {
		return &e.inner[i]
	}
	return nil
}

// readWhole reads a section that the job gives. No value of the same section in the defaults stays.
func (e entry) readWhole(d *decoder, n *yaml.Node, path string, j *store.Job, short *entry, fields []field) {
	for _, in := range e.inner {
		*in.Of(j).(*string) = ""
	}
	at := followed(n)
	if at.Kind == yaml.MappingNode {
		d.mapping(n, path, fields)
		return
	}
	short.read(j)(d, n, join(path, short.key))
}

// opened reads a value for a pointer. The pointer is nil if the key is not given.
func opened[T any](into **T, read func(*T) reading) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		v, before := new(T), len(d.problems)
		if read(v)(d, n, path); len(d.problems) == before {
			*into = v
		}
	}
}

func tries(into *store.Attempts) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		const want = "a number from 1 to 1000, or until-next"
		n, ok := d.scalar(n, path, want, "!!int", "!!str")
		if !ok || n.ShortTag() == "!!str" && into.UnmarshalText([]byte(n.Value)) == nil {
			return
		}
		if v, ok := d.whole(n, path, want, 1, 1000); ok {
			*into = store.Attempts(v)
		}
	}
}

// retries reads the short form of the section retry: how often a step is tried again.
func retries(into *store.Attempts) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		const want = "how often to try again, from 0 to 999, or until-next, or a mapping with keys such as attempts, backoff, max_backoff"
		n, ok := d.scalar(n, path, want, "!!int", "!!str")
		if !ok || into.UnmarshalText([]byte(n.Value)) == nil && *into == 0 { // until-next
			return
		}
		if again, ok := d.whole(n, path, want, 0, 999); ok {
			*into = store.Attempts(1 + again)
		}
	}
}

// retry reads the retry section of a step, which has the same keys as that of a job.
func retry(into *store.Retry) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		j := store.Job{Retry: *into}
		section("retry").read(&j)(d, n, path)
		*into = j.Retry
	}
}

// policy writes a policy of the job if it differs from usual.
func (o *object) policy(e entry, j, usual *store.Job) {
	if e.inner != nil {
		s := &object{}
		for _, in := range e.inner {
			s.policy(in, j, usual)
		}
		if short := e.short(); short != nil && len(s.Content) == 2 && s.Content[0].Value == short.key {
			o.put(e.key, s.Content[1])
			return
		}
		o.section(e.key, s)
		return
	}
	switch v := e.Of(j).(type) {
	case *string:
		o.text(e.key, *v, *e.Of(usual).(*string))
	case *[]string:
		if len(*v) > 0 {
			o.put(e.key, list(*v))
		}
	case *[]store.After:
		o.after(e.key, *v)
	case *int:
		o.number(e.key, int64(*v), int64(*e.Of(usual).(*int)))
	case *int64:
		o.number(e.key, *v, *e.Of(usual).(*int64))
	case *bool:
		o.boolean(e.key, *v)
	case *time.Time:
		o.instant(e.key, *v)
	case *store.Duration:
		o.duration(e.key, *v, *e.Of(usual).(*store.Duration))
	case **store.Duration:
		if differs(*v, *e.Of(usual).(**store.Duration)) {
			o.put(e.key, plain((*v).String()))
		}
	case **store.Attempts:
		if differs(*v, *e.Of(usual).(**store.Attempts)) {
			text, _ := (*v).MarshalText() // never fails
			o.put(e.key, plain(string(text)))
		}
	case **int:
		if differs(*v, *e.Of(usual).(**int)) {
			o.put(e.key, plain(strconv.Itoa(**v)))
		}
	}
}

// differs reports whether v is set and differs from usual.
func differs[T comparable](v, usual *T) bool {
	return v != nil && (usual == nil || *v != *usual)
}

// policyFlags are the flags of policies.
func policyFlags() (flags []Flag) {
	for _, p := range store.Policies() {
		if p.Help == "" {
			continue
		}
		kind := Literal
		switch p.Of(&store.Job{}).(type) {
		case *string:
			kind = Text
		case *[]string:
			kind = Texts
		case *[]store.After:
			kind = Entries
		case *bool:
			kind = Switch
		}
		flags = append(flags, Flag{p.FlagName(), p.Key, kind, p.Usage()})
	}
	return flags
}
