package settings

import (
	"net/url"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/secret"
)

// Display returns the database in a form that may be shown: without password and parameters.
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

// Secrets returns the secrets that Scrub hides, including those that are added later.
func (d Database) Secrets() *secret.Known { return d.secrets }

// Scrub removes credentials from a text. It removes those of the database, in case a driver or a server put
// them there, and everything else that looks like a credential.
func (d Database) Scrub(text string) string { return d.secrets.Hide(text) }
