// Package settings says which database the command line works on, and keeps what is secret in that answer out of
// everything that is printed.
//
// A setting is a flag, else a variable, else a default. What stands in a variable that is set but empty is treated as
// lost, not as unset: the crontab line whose secret was not substituted must fail, not tick another database.
package settings

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

// URLVariable holds the database's URL if no flag does.
const URLVariable = "DBJOBS_DATABASE_URL"

// Database is the answer: a URL, and whether nobody asked for it.
type Database struct {
	URL      string
	Embedded bool   // the default: an embedded SQLite file in the user's data directory
	Path     string // of that file
}

// Find decides on the database: the flag, the variable, or the embedded default. A URL that nothing can be made of is
// an error here, before anything is opened; the error never quotes it, since it may hold a password.
func Find(flag string, flagGiven bool, env Lookup) (Database, error) {
	raw, from := flag, "--database"
	if !flagGiven {
		value, found := env(URLVariable)
		if !found {
			return embedded(env)
		}
		raw, from = value, URLVariable
	}
	if raw == "" {
		return Database{}, fmt.Errorf("%s is set but empty; give it a URL, or unset it for the embedded database", from)
	}
	if err := check(raw); err != nil {
		return Database{}, fmt.Errorf("%s: %w; want postgres://user:password@host/database, mysql://user:password@host/database or sqlite:path", from, err)
	}
	return Database{URL: raw}, nil
}

// embedded is the default. Platforms that throw the file away after each call have no use for it.
func embedded(env Lookup) (Database, error) {
	for _, platform := range [][2]string{{"AWS_LAMBDA_FUNCTION_NAME", "Lambda"}, {"K_SERVICE", "Cloud Run"}, {"CLOUD_RUN_JOB", "Cloud Run"}} {
		if _, found := env(platform[0]); found {
			return Database{}, fmt.Errorf("%s is not set, and %s keeps no files for the embedded database; set it", URLVariable, platform[1])
		}
	}
	dir, _ := env("XDG_DATA_HOME")
	if !filepath.IsAbs(dir) { // the standard says to ignore a relative one
		home, _ := env("HOME")
		if home == "" {
			return Database{}, fmt.Errorf("neither %s nor HOME is set, so there is no database to use; set one", URLVariable)
		}
		dir = filepath.Join(home, ".local", "share")
	}
	path := filepath.Join(dir, "dbjobs", "dbjobs.db")
	return Database{URL: "sqlite:" + path, Embedded: true, Path: path}, nil
}

// check tells what is wrong with a URL, without quoting it.
func check(raw string) error {
	scheme, rest, found := strings.Cut(raw, ":")
	switch {
	case !found || !slices.Contains([]string{"postgres", "postgresql", "mysql", "mariadb", "sqlite"}, scheme):
		return errors.New("not the URL of a database that dbjobs knows")
	case scheme == "sqlite":
		if strings.Trim(rest, "/") == "" {
			return errors.New("the path after sqlite: is missing")
		}
		return nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		// What url.Parse says quotes the URL; its usual cause is a password with characters that URLs reserve.
		return errors.New("not a URL (a password with / ? # @ or % in it has to be percent-encoded)")
	case u.Opaque != "" || u.Host == "" && u.Query().Get("host") == "":
		return errors.New("the host is missing")
	}
	return nil
}

// Exists tells whether the file of the embedded database is there.
func (d Database) Exists() bool {
	_, err := os.Stat(d.Path)
	return err == nil
}

// Display is the database as it may be shown: without password and parameters.
func (d Database) Display() string {
	scheme, _, _ := strings.Cut(d.URL, ":")
	if scheme == "sqlite" {
		return d.URL
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		return scheme + "://…"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if name := u.User.Username(); name != "" {
		shown.User = url.User(name)
	}
	return shown.String()
}

// Scrub takes the password of the database's URL out of a text, should a driver or a server have put it there.
func (d Database) Scrub(text string) string {
	const hidden = "[hidden]"
	if d.URL != "" && !strings.HasPrefix(d.URL, "sqlite:") {
		text = strings.ReplaceAll(text, d.URL, d.Display())
	}
	for _, s := range d.secrets() {
		text = strings.ReplaceAll(text, s, hidden)
	}
	return text
}

// secrets are the passwords in the URL, as written and as meant. One that is also a public part of the URL, such as
// the user's name, is not a secret that could be kept: hiding it would only garble what is said about the database.
func (d Database) secrets() (all []string) {
	u, err := url.Parse(d.URL)
	if err != nil || u.Scheme == "sqlite" {
		return nil
	}
	add := func(s string) {
		public := s == "" || s == u.User.Username() || s == u.Hostname() || s == strings.Trim(u.Path, "/") || s == u.Scheme || s == u.Port()
		if !public {
			all = append(all, s)
		}
	}
	if password, set := u.User.Password(); set {
		add(password)
		if _, rest, ok := strings.Cut(d.URL, ":"+u.User.Username()+":"); ok {
			raw, _, _ := strings.Cut(rest, "@")
			add(raw)
		}
		add(url.QueryEscape(password))
		add(url.PathEscape(password))
	}
	for key, values := range u.Query() {
		if k := strings.ToLower(key); strings.Contains(k, "password") || strings.Contains(k, "passwd") {
			for _, v := range values {
				add(v)
			}
		}
	}
	return all
}
