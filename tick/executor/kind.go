package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store"
)

// Kinds lists the executors. A new executor needs a file that makes a Kind, and an entry here; mail.go is a short model.
// Tests then say where else its keys have to be listed: the flags and the unknown keys in cmd/internal/manifest/testdata,
// and the tables of tick/README.md.
var Kinds = []Kind{sqlKind, httpKind, mailKind, execKind, shellKind}

// With these checks, commands and passes refuse a spec that no step could execute.
func init() {
	for _, k := range Kinds {
		store.KnowSpecs(k.Name, store.SpecRules{Check: k.Check, Form: k.form})
	}
}

// form writes a spec as a file would, if plain SQL has written the same in other words.
func (k *Kind) form(spec json.RawMessage) (json.RawMessage, error) {
	if k.Name == sqlKind.Name && onlyTexts(spec) {
		return spec, nil
	}
	values, err := k.Values(spec)
	if err != nil {
		return nil, err
	}
	return k.Spec(values)
}

// onlyTexts reports whether a spec of SQL has nothing that may have other words: most specs are statements without arguments,
// and apply reads the specs of all jobs.
func onlyTexts(spec json.RawMessage) bool {
	for _, other := range []string{`"args"`, "{", "[]", `""`, "false", "null"} {
		if len(spec) == 0 || bytes.Contains(spec[1:], []byte(other)) {
			return false
		}
	}
	return true
}

// Kind describes an executor: the keys of a step, how they become its spec, and what executes it.
type Kind struct {
	Name string
	Keys []Key // keys of a step, and of a job with one step. The first key is required: it says that a step is of this kind

	Spec   func(given map[string]any) (json.RawMessage, error) // makes a spec from the values of keys; also called with only some of them
	Values func(spec json.RawMessage) (map[string]any, error)  // the values from which Spec has made the spec
	Line   func(spec json.RawMessage) string                   // what the step does, in one line; empty: the spec cannot be read
	Check  func(spec json.RawMessage) error                    // refuses a spec that no run could execute
	Open   func(s *store.Store, h *Host) (Executor, error)     // makes the executor of a process; it is closed if it is an io.Closer

	Warn func(spec json.RawMessage) string // warns of something that is allowed, but probably a mistake; nil, or an empty result: no warning

	Touches func(spec json.RawMessage) Touched // what a step touches outside of the database; nil: nothing
}

// Key is a key of a step in a manifest, or of a Mapping.
type Key struct {
	Name string
	Type Type
	Flag string // the flag of job create, if it is not the name; for a key of a Mapping, if it has a flag
	Help string // the help of the flag: required
	Keys []Key  // the keys of a Mapping
	// Comments are what begins a comment in the value that ends with the line, such as -- in SQL; none: the value has none.
	Comments []string
	// Short says that a value that is not a mapping is the value of the first of Keys, and that this key is required.
	Short bool
	// Filled says of a Text that Spec also gets an empty one, and refuses it: elsewhere, an empty text is the same as none.
	Filled bool
}

// KeyError says what is wrong with the value at a place below a step. The place has names of keys, and positions in
// lists as int. Spec returns a KeyError if it can, so that a message can name the place in the file.
type KeyError struct {
	At  []any
	Err error
}

func (e *KeyError) Error() string {
	var at strings.Builder
	for _, part := range e.At {
		if i, ok := part.(int); ok {
			fmt.Fprintf(&at, "[%d]", i)
			continue
		}
		if at.Len() > 0 {
			at.WriteByte('.')
		}
		fmt.Fprint(&at, part)
	}
	return at.String() + ": " + e.Err.Error()
}

func (e *KeyError) Unwrap() error { return e.Err }

// Type is the type of the value of a key.
type Type int

// The types of values.
const (
	Switch     Type = iota // true or false; a bool
	Text                   // a text; a string
	Arguments              // a list of texts, numbers, truth values and nulls; a []any with numbers as json.Number
	Statements             // a text, or a list of texts or of mappings with text and args; a []Statement
	List                   // a text or a list of them, numbers as they are written; a []string
	Pairs                  // a mapping of names to texts, numbers as they are written; a map[string]string
	JSON                   // any value as JSON has them; numbers as json.Number
	Mapping                // a mapping with Keys; a map[string]any of the given keys
	TargetName             // the name of a target of the host; a string
)

// KindOf returns the kind of that name, or nil.
func KindOf(name string) *Kind {
	if i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return &Kinds[i]
	}
	return nil
}

// Open makes an executor of each kind, for steps that may touch what the host allows. The caller closes the Registry.
func Open(s *store.Store, h *Host) (Registry, error) {
	r := Registry{}
	for _, k := range Kinds {
		x, err := k.Open(s, h)
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("executor %s: %w", k.Name, err)
		}
		r[k.Name] = x
	}
	return r, nil
}

// Close releases what the executors hold.
func (r Registry) Close() {
	for _, x := range r {
		if c, ok := x.(io.Closer); ok {
			_ = c.Close() // nothing of it is needed any more
		}
	}
}
