package settings

import (
	"net/url"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/secret"
)

// Display is the database as it may be shown: without password and parameters.
func (d Database) Display() string {
	if e, err := engine.Of(d.URL); err == nil && e.Port == 0 {
		return d.URL
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		scheme, _, _ := strings.Cut(d.URL, ":")
		return scheme + "://…"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if name := u.User.Username(); name != "" {
		shown.User = url.User(name)
	}
	return shown.String()
}

// Secrets are those that Scrub hides: also what is added to them later.
func (d Database) Secrets() *secret.Known { return d.secrets }

// Scrub removes credentials from a text: those of the database, in case a driver or a server put them
// there, and whatever else looks like one.
func (d Database) Scrub(text string) string { return d.secrets.Hide(text) }
