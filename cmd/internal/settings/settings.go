// Package settings says which database the command line works on, and keeps what is secret in that answer out of
// everything that is printed.
//
// A setting is a flag, else a variable, else a default. What stands in a variable that is set but empty is treated as
// lost, not as unset: the crontab line whose secret was not substituted must fail, not tick another database.
package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/secret"
)

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

// The variables that tell of the database, where no flag does.
const (
	URLVariable    = "DBJOBS_DATABASE_URL"
	FileVariable   = "DBJOBS_DATABASE_URL_FILE"   // a file that holds the URL, as platforms mount secrets
	SecretVariable = "DBJOBS_DATABASE_SECRET_ARN" // a secret of AWS Secrets Manager with the URL, or with parts of it
	AuthVariable   = "DBJOBS_DATABASE_AUTH"       // rds-iam: the password is a token
)

// Variables are all of them.
func Variables() []string { return []string{URLVariable, FileVariable, SecretVariable, AuthVariable} }

// Database is the answer: a URL, and whether nobody asked for it.
type Database struct {
	URL      string
	Embedded bool   // the default: an embedded SQLite file in the user's data directory
	Path     string // of that file
	// Login, if it is set, tells user and password for each new connection, in place of those in the URL.
	Login func(context.Context) (user, password string, err error)

	secrets *secret.Known
}

// Find decides on the database: the flag, the variables, or the embedded default. A URL that nothing can be made of is
// an error here, before anything is opened; no error quotes it, since it may hold a password.
func Find(ctx context.Context, flag string, flagGiven bool, env Lookup) (Database, error) {
	raw, from, err := written(flag, flagGiven, env)
	if err != nil {
		return Database{}, err
	}
	d := Database{URL: raw, secrets: &secret.Known{}}
	d.secrets.AddURL(raw)
	if arn, found := env(SecretVariable); found && !flagGiven {
		if arn == "" {
			return Database{}, lost(SecretVariable)
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
	if err := check(d.URL); err != nil {
		return Database{}, fmt.Errorf("%s: %w; want postgres://user:password@host/database, mysql://user:password@host/database or sqlite:path", from, err)
	}
	if auth, found := env(AuthVariable); found {
		if err := d.authenticate(auth, env); err != nil {
			return Database{}, fmt.Errorf("%s: %w", AuthVariable, err)
		}
	}
	return d, nil
}

// written is the URL as it stands somewhere, and where; nothing, where it stands nowhere.
func written(flag string, flagGiven bool, env Lookup) (raw, from string, err error) {
	if flagGiven {
		if flag = strings.TrimSpace(flag); flag == "" {
			return "", "", lost("--database")
		}
		return flag, "--database", nil
	}
	raw, found := env(URLVariable)
	raw = strings.TrimSpace(raw) // a file's last line end is easily carried along
	file, inFile := env(FileVariable)
	switch {
	case found && inFile:
		return "", "", fmt.Errorf("%s and %s are both set; unset one", URLVariable, FileVariable)
	case found && raw == "":
		return "", "", lost(URLVariable)
	case found:
		return raw, URLVariable, nil
	case !inFile:
		return "", "", nil
	case file == "":
		return "", "", lost(FileVariable)
	}
	text, err := readFile(file)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", FileVariable, err)
	}
	if raw = strings.TrimSpace(string(text)); raw == "" {
		return "", "", fmt.Errorf("%s: the file %s is empty", FileVariable, file)
	}
	return raw, FileVariable, nil
}

// fileMost is the longest file with a URL: far beyond what any URL takes.
const fileMost = 64 << 10

// readFile reads the file with the URL. Only a file that has an end can be one: a pipe would be waited for, and a device
// may never end.
func readFile(path string) ([]byte, error) {
	if strings.Contains(path, "://") {
		return nil, fmt.Errorf("found a URL; want the path of a file that holds it, or put the URL into %s", URLVariable)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileMost+1))
	if len(text) > fileMost {
		return nil, fmt.Errorf("the file %s is longer than %d bytes; it is to hold a URL and nothing else", path, fileMost)
	}
	return text, err
}

func lost(from string) error {
	return fmt.Errorf("%s is set but empty; give it a value, or unset it (without any, the database is the embedded one)", from)
}

// embedded is the default. Platforms that throw the file away after each call have no use for it.
func embedded(env Lookup) (Database, error) {
	for _, platform := range [][2]string{{"AWS_LAMBDA_FUNCTION_NAME", "Lambda"}, {"K_SERVICE", "Cloud Run"}, {"CLOUD_RUN_JOB", "Cloud Run"}} {
		if _, found := env(platform[0]); found {
			return Database{}, fmt.Errorf("%s is not set, and %s keeps no files for the embedded database; set it, %s or %s", URLVariable, platform[1], FileVariable, SecretVariable)
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
	scheme, rest, _ := strings.Cut(raw, ":")
	e, err := engine.Of(raw)
	switch {
	case err != nil || scheme == "file": // which means a file of SQLite, too, but has one name here
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
	case u.Opaque != "" || u.Host == "" && u.Query().Get("host") == "" && u.Query().Get("socket") == "":
		return errors.New("the host is missing")
	}
	return nil
}

// Exists reports whether the file of the embedded database is there.
func (d Database) Exists() bool {
	_, err := os.Stat(d.Path)
	return err == nil
}
