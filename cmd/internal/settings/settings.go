// Package settings finds the database for the command line, and keeps its secrets out of everything
// that is printed.
//
// A setting comes from a flag, or else from a variable, or else it is the default. A variable that is set but
// empty is an error, and does not count as missing: a crontab line whose secret was not substituted must fail,
// and not tick another database.
package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/secret"
)

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

// The variables that name the database if no flag does.
const (
	URLVariable    = "DBJOBS_DATABASE_URL"
	FileVariable   = "DBJOBS_DATABASE_URL_FILE"   // a file that holds the URL, as platforms mount secrets
	SecretVariable = "DBJOBS_DATABASE_SECRET_ARN" // a secret of AWS Secrets Manager with the URL, or with parts of it
	AuthVariable   = "DBJOBS_DATABASE_AUTH"       // rds-iam: the password is a token
	DirectVariable = "DBJOBS_DATABASE_DIRECT_URL" // for the SQL of jobs, where the URL leads through a pooler; also with _FILE
)

// Variables returns the names of all of them.
func Variables() []string {
	return []string{URLVariable, FileVariable, SecretVariable, AuthVariable, DirectVariable, DirectVariable + "_FILE"}
}

// Database is the URL of a database, with what is known about it.
type Database struct {
	URL      string
	Embedded bool   // the default: an embedded SQLite file in the user's data directory
	Path     string // of that file
	From     string // the flag, the variable or the place in the host's settings that names it; "default": nothing does
	// Login, if it is set, returns user and password for each new connection, instead of those in the URL.
	Login func(context.Context) (user, password string, err error)
	// Direct is another way to the same database, for the SQL of jobs; nil: there is one way.
	Direct *Database

	secrets *secret.Known
}

// Find finds the database: by the flag, by the variables, by the host's settings, or else the embedded default.
// It reads the host's settings only if flag and variables name none. A URL that is not valid is an error here,
// before anything is opened. No error quotes the URL, because it may hold a password.
func Find(ctx context.Context, flag string, flagGiven bool, env Lookup, host func(context.Context) (url, from string, err error)) (Database, error) {
	raw, from, err := written(ctx, flag, flagGiven, env, host)
	if err != nil {
		return Database{}, err
	}
	d := Database{URL: raw, secrets: &secret.Known{}}
	d.secrets.AddURL(raw)
	if arn, found := env(SecretVariable); found && !flagGiven {
		if arn == "" {
			return Database{}, lost(SecretVariable, embeddedInstead)
		}
		if strings.Contains(arn, "://") {
			return Database{}, fmt.Errorf("%s: found a URL; want the ARN or the name of a secret that holds it, or put the URL into %s", SecretVariable, URLVariable)
		}
		if err := d.fromSecret(ctx, env, arn); err != nil {
			return Database{}, err
		}
		from = strings.TrimPrefix(from+" with "+SecretVariable, " with ")
	}
	if from == "" {
		return embedded(env)
	}
	d.From = from
	if !flagGiven { // a flag names another database than the variables do
		if err := d.findDirect(ctx, env); err != nil {
			return Database{}, err
		}
	}
	if err := errors.Join(d.complete(env), d.Direct.logIn(env)); err != nil {
		return Database{}, err // an empty Database: a text that is no URL must not be shown by mistake
	}
	d.follow(flag, flagGiven, env, host)
	return d, nil
}

// follow is Follow for the places where Find has found the URLs, unless these cannot change while the process lives.
func (d *Database) follow(flag string, flagGiven bool, env Lookup, host func(context.Context) (url, from string, err error)) {
	if !flagGiven && d.From != URLVariable {
		d.Follow(func(ctx context.Context) (string, error) {
			raw, _, err := written(ctx, flag, flagGiven, env, host)
			return raw, err
		})
	}
	if d.Direct != nil && d.Direct.From != DirectVariable {
		d.Direct.Follow(func(ctx context.Context) (string, error) {
			raw, _, err := read(ctx, DirectVariable, "", env)
			return raw, err
		})
	}
}

// findDirect reads the URL for the SQL of jobs. It uses the same login.
func (d *Database) findDirect(ctx context.Context, env Lookup) error {
	raw, from, err := read(ctx, DirectVariable, "", env)
	if err != nil || from == "" {
		return err
	}
	d.secrets.AddURL(raw)
	if err := check(raw); err != nil {
		return fmt.Errorf("%s: %w; want %s", from, err, engine.Forms())
	}
	for _, of := range []string{d.URL, raw} {
		if e, err := engine.Of(of); err == nil && e.Port == 0 {
			return fmt.Errorf("%s: a SQLite file has no pooler in front of it; unset this variable", from)
		}
	}
	d.Direct = &Database{URL: raw, From: from, Login: d.Login, secrets: d.secrets}
	return nil
}

// logIn sets up the login that the environment names.
func (d *Database) logIn(env Lookup) error {
	auth, found := env(AuthVariable)
	if d == nil || !found {
		return nil
	}
	if err := d.authenticate(auth, env); err != nil {
		return fmt.Errorf("%s: %w", AuthVariable, err)
	}
	return nil
}

// Of returns a database whose URL is known. from is the place where the URL stands. The error does not quote
// the URL.
func Of(raw, from string, env Lookup) (Database, error) {
	d := Database{URL: strings.TrimSpace(raw), From: from, secrets: &secret.Known{}}
	d.secrets.AddURL(d.URL)
	if err := d.complete(env); err != nil {
		return Database{}, err
	}
	return d, nil
}

// complete checks the URL, and adds the login that the variables ask for.
func (d *Database) complete(env Lookup) error {
	if err := check(d.URL); err != nil {
		return fmt.Errorf("%s: %w; want %s", d.From, err, engine.Forms())
	}
	return d.logIn(env)
}

// Named reports whether a variable names the database.
func Named(env Lookup) bool { return NamedBy(env) != "" }

// NamedBy returns the variable that names the database; empty: none does.
func NamedBy(env Lookup) string {
	for _, name := range []string{URLVariable, FileVariable, SecretVariable} {
		if _, found := env(name); found {
			return name
		}
	}
	return ""
}

// DirectBy returns the variable that names another way to the database, for the SQL of jobs; empty: none does.
func DirectBy(env Lookup) string {
	for _, name := range []string{DirectVariable, DirectVariable + "_FILE"} {
		if _, found := env(name); found {
			return name
		}
	}
	return ""
}

// written returns the URL and the name of the flag, variable or place that holds it, or nothing. A secret that a variable names
// goes before the host's settings, too, but fromSecret reads it.
func written(ctx context.Context, flag string, flagGiven bool, env Lookup, host func(context.Context) (url, from string, err error)) (raw, from string, err error) {
	if flagGiven {
		if flag = strings.TrimSpace(flag); flag == "" {
			return "", "", lost("--database", embeddedInstead)
		}
		return flag, "--database", nil
	}
	raw, from, err = read(ctx, URLVariable, embeddedInstead, env)
	if err == nil && host != nil && !Named(env) {
		raw, from, err = host(ctx)
		raw = strings.TrimSpace(raw)
	}
	return raw, from, err
}

// embeddedInstead says what happens if no database is named.
const embeddedInstead = " (if none is set, dbjobs uses the embedded database)"

// Secret returns the value of a variable, or of the file that the variable NAME_FILE names, and tells which of
// the two it was. It returns "" if neither is set. Set but empty is an error. No error quotes the value.
func Secret(ctx context.Context, name string, env Lookup) (value, from string, err error) {
	return read(ctx, name, "", env)
}

func read(ctx context.Context, name, otherwise string, env Lookup) (value, from string, err error) {
	value, found := env(name)
	value = strings.TrimSpace(value) // the line end of a file's last line is often part of it
	path, inFile := env(name + "_FILE")
	switch {
	case found && inFile:
		return "", "", fmt.Errorf("%s and %s_FILE are both set; unset one", name, name)
	case found && value == "":
		return "", "", lost(name, otherwise)
	case found:
		return value, name, nil
	case !inFile:
		return "", "", nil
	}
	name += "_FILE"
	if path == "" {
		return "", "", lost(name, otherwise)
	}
	if strings.Contains(path, "://") {
		return "", "", fmt.Errorf("%s: found a URL; want the path of a file, or put the value into the variable without _FILE", name)
	}
	ctx, cancel := Patiently(ctx)
	defer cancel()
	text, err := File(ctx, path, fileMost)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("%s: %w", name, err)
	case len(text) > fileMost:
		return "", "", fmt.Errorf("%s: the file %s is longer than %d bytes; it must hold the value and nothing else", name, path, fileMost)
	}
	if value, err = Text(text); err != nil {
		return "", "", fmt.Errorf("%s: the file %s %w", name, path, err)
	}
	if value = strings.TrimSpace(value); value == "" {
		return "", "", fmt.Errorf("%s: the file %s is empty", name, path)
	}
	return value, name, nil
}

// fileMost is the length of the longest secret file that is read. No URL or token is nearly as long.
const fileMost = 64 << 10

// Text returns the text of a file, without the mark that editors of Windows write before it.
func Text(data []byte) (string, error) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) {
		return "", errors.New("is UTF-16, as PowerShell's > writes it; save it as UTF-8")
	}
	return strings.TrimPrefix(string(data), "\ufeff"), nil
}

func lost(from, otherwise string) error {
	return fmt.Errorf("%s is set but empty; give it a value, or unset it%s", from, otherwise)
}

// embedded returns the default. It is refused on platforms that delete the file after each call.
func embedded(env Lookup) (Database, error) {
	for _, platform := range [][2]string{{"AWS_LAMBDA_FUNCTION_NAME", "Lambda"}, {"K_SERVICE", "Cloud Run"}, {"CLOUD_RUN_JOB", "Cloud Run"}} {
		if _, found := env(platform[0]); found {
			return Database{}, fmt.Errorf("%s is not set, and %s keeps no files for the embedded database; set it, %s or %s", URLVariable, platform[1], FileVariable, SecretVariable)
		}
	}
	dir, err := dataFolder(runtime.GOOS, env)
	if err != nil {
		return Database{}, err
	}
	path := filepath.Join(dir, "dbjobs", "dbjobs.db")
	return Database{URL: "sqlite:" + inURL.Replace(path), Embedded: true, Path: path, From: "default", secrets: &secret.Known{}}, nil
}

// dataFolder returns the folder of a system in which programs keep the data of their user.
func dataFolder(system string, env Lookup) (string, error) {
	if system == "windows" {
		if dir, _ := env("LOCALAPPDATA"); dir != "" {
			return dir, nil
		}
		return "", fmt.Errorf("neither %s nor LOCALAPPDATA is set, so there is no database to use; set one", URLVariable)
	}
	if dir, _ := env("XDG_DATA_HOME"); filepath.IsAbs(dir) { // the XDG standard says to ignore a relative path
		return dir, nil
	}
	if home, _ := env("HOME"); home != "" {
		return filepath.Join(home, ".local", "share"), nil
	}
	return "", fmt.Errorf("neither %s nor HOME is set, so there is no database to use; set one", URLVariable)
}

// inURL escapes what has a meaning in the URL of a file. A home folder may have any name.
var inURL = strings.NewReplacer("%", "%25", "?", "%3F")

// check returns what is wrong with a URL, without quoting it.
func check(raw string) error {
	scheme, rest, _ := strings.Cut(raw, ":")
	e, err := engine.Of(raw)
	switch {
	case scheme == "sqlserver":
		return errors.New("SQL Server cannot hold dbjobs' own tables; it can be a target, in which steps run their statements")
	case err != nil:
		return errors.New("not the URL of a database that dbjobs knows")
	case e.Port == 0:
		if strings.Trim(rest, "/") == "" {
			return errors.New("the path after sqlite: is missing")
		}
		return nil
	}
	u, err := secret.ParseURL(raw)
	switch {
	case err != nil:
		return err
	case u.Opaque != "" || u.Host == "" && !slices.ContainsFunc([]string{"host", "socket", "service"}, func(at string) bool { return u.Query().Get(at) != "" }):
		return errors.New("the host is missing")
	}
	return nil
}

// Exists reports whether the file of the embedded database is there.
func (d Database) Exists() bool {
	_, err := os.Stat(d.Path)
	return err == nil
}
