package report

import (
	"fmt"
	"io"

	"github.com/dbjobs/dbjobs/store"
)

// Schema holds the facts of migrate --status.
type Schema struct {
	Database string `json:"database"` // without password
	Engine   string `json:"engine"`
	store.Schema
	Usable bool `json:"usable"` // by this program
}

// Print writes the facts for people.
func (s Schema) Print(w io.Writer) error {
	f := newFacts(w)
	f.add("database", s.Database)
	f.add("engine", s.Engine)
	switch s.Version {
	case 0:
		f.add("schema", fmt.Sprintf("none (the newest is %d)", s.Latest))
	case s.Latest:
		f.add("schema", fmt.Sprintf("%d, the newest", s.Version))
	default:
		f.add("schema", fmt.Sprintf("%d (the newest this program knows is %d)", s.Version, s.Latest))
	}
	if s.Outdated {
		f.add("views", "not those of this program: run `dbjobs migrate`")
	} else if s.Version > 0 && s.Version <= s.Latest { // those of a newer schema are not compared
		f.add("views", "those of this program")
	}
	f.add("instance", s.Instance)
	if s.Owners {
		f.add("owners", "yes: jobs belong to logins")
	}
	if !s.Usable {
		f.add("usable", "no: "+s.Check().Error())
	}
	return f.flush()
}

// Version holds the facts of version.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int    `json:"schema"` // the newest version of the schema that it knows
}

// Print writes the facts in one line.
func (v Version) Print(w io.Writer) error {
	text := "dbjobs " + v.Version
	if v.Revision != "" {
		text += " (" + v.Revision + ")"
	}
	_, err := fmt.Fprintf(w, "%s %s %s, schema %d\n", text, v.Go, v.Platform, v.Schema)
	return err
}
