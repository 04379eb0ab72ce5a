package report

import (
	"io"
	"strings"
)

// Config holds the facts of config check.
type Config struct {
	Settings string  `json:"settings"` // the file, or the variable that holds the text; empty: the host has no settings
	InForce  []Force `json:"in_force"`
}

// Force is one thing that is in force on a host. It contains no secret.
type Force struct {
	Kind   string   `json:"kind"` // database, permission, setting, owner, target, program, address, cloud, secret, mail, heartbeat, on
	Name   string   `json:"name,omitempty"`
	Value  string   `json:"value,omitempty"`
	Owners []string `json:"owners"` // empty: all
	From   string   `json:"from"`
}

// Add adds one such thing.
func (c *Config) Add(kind, name, value, from string, owners []string) {
	c.InForce = append(c.InForce, Force{kind, name, value, List(owners), from})
}

// Print lays it out for people.
func (c Config) Print(w io.Writer) error {
	t := newTable(w, "KIND", "NAME", "VALUE", "OWNERS", "FROM")
	for _, f := range c.InForce {
		owners := strings.Join(f.Owners, ", ")
		if owners == "" && f.Kind != "database" && f.Kind != "setting" {
			owners = "all"
		}
		t.row(f.Kind, f.Name, f.Value, owners, f.From)
	}
	return t.flush()
}
