package executor

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store"
)

// Kinds are the executors that there are. A new one is a file that makes a Kind, and its name here; mail.go is a short
// model. Tests then name what lists the keys of executors: the flags and the unknown keys in cmd/internal/manifest/testdata,
// and the tables of tick/README.md.
var Kinds = []Kind{sqlKind, httpKind, mailKind, execKind, shellKind}

// Commands and passes refuse what a step of any of them could not do.
func init() {
	for _, k := range Kinds {
		store.CheckSpecs(k.Name, k.Check)
	}
}

// Kind is all that is known of an executor: the keys of a step, what they make of its spec, and what executes it.
type Kind struct {
	Name string
	Keys []Key // of a step, and of a job with one step. The first says that a step is of this kind, and is needed

	Spec   func(given map[string]any) (json.RawMessage, error) // from the values of keys; also called with some of them
	Values func(spec json.RawMessage) (map[string]any, error)  // those that Spec made it from
	Line   func(spec json.RawMessage) string                   // what it does, in a line; empty: it cannot be read
	Check  func(spec json.RawMessage) error                    // refuses what no run could do
	Open   func(s *store.Store, h *Host) (Executor, error)     // one for a process; closed if it is an io.Closer

	Warn func(spec json.RawMessage) string // of what is allowed, and hardly meant; nil, or empty: nothing is

	Touches func(spec json.RawMessage) Touched // what it touches outside of the database; nil: nothing
}

// Key is a key of a step in a manifest, or of a Mapping.
type Key struct {
	Name string
	Type Type
	Flag string // of job create: where it is not the name; for a key of a Mapping, where there is one
	Help string // of the flag: needed
	Keys []Key  // of a Mapping
	// Short says that a value that is no mapping stands for the first of Keys, and that the first is needed.
	Short bool
}

// KeyError is what is wrong with the value at a place below a step: names of keys, and places in lists as int. Spec
// gives one where it can, so that the place in the file is named.
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

// Type is what the value of a key is.
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
	Mapping                // a mapping with Keys; a map[string]any of those that are given
	TargetName             // the name of a target of the host's; a string
)

// KindOf is the kind of that name, or nil.
func KindOf(name string) *Kind {
	if i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return &Kinds[i]
	}
	return nil
}

// Open makes an executor of each kind, for steps that may touch what the host allows. Close them.
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

// Close ends what the executors hold.
func (r Registry) Close() {
	for _, x := range r {
		if c, ok := x.(io.Closer); ok {
			_ = c.Close() // nothing of it is needed any more
		}
	}
}
