// Package host reads what the owner of a host has set: which database to use, and what steps may touch there.
//
// The settings are one YAML file. The variable DBJOBS_CONFIG names the file. If there is no disk, the variable can
// also contain the text: a value with a line end, or with a colon and a blank, is the text. Without the variable,
// the file is the first one that exists of $XDG_CONFIG_HOME/dbjobs/config.yaml and /etc/dbjobs/config.yaml. If
// XDG_CONFIG_HOME is not set, ~/.config takes its place. On a Mac, the folder that the system has for settings comes
// between the two; on Windows, there is only that folder. Files are never merged.
//
// A user who can write the file can do all that the user of dbjobs can do. So a file is refused if other users may
// write it, or may replace it through a folder or link on the way to it. A file that other users may read is
// refused if it contains a secret.
package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
)

// Variable names the file with the settings, or holds their text.
const Variable = "DBJOBS_CONFIG"

// SecretPrefix begins the names of variables that are secrets for definitions: the variable DBJOBS_SECRET_HOOK is
// ${secret:HOOK}.
const SecretPrefix = "DBJOBS_SECRET_"

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

// Settings are what is set on a host.
type Settings struct {
	// From names the source of the settings: a file, or the variable. Empty: nothing is set.
	From string
	*manifest.Host

	env  Lookup
	vars []string // names of secrets that are variables
}

// most is the length of the longest file that is read.
const most = 1 << 20

// Load reads the settings. environ has NAME=VALUE of all variables; Load looks for secrets in them. A host without
// settings is no error.
func Load(env Lookup, environ []string) (*Settings, error) {
	s := &Settings{Host: &manifest.Host{}, env: env, vars: secretVariables(environ)}
	value, given := env(Variable)
	switch {
	case given && strings.TrimSpace(value) == "":
		return nil, fmt.Errorf("%s is set but empty; give it a path or the text of the settings, or unset it", Variable)
	case given && IsText(value):
		s.From = Variable
		return s, s.decode([]byte(value))
	case given:
		s.From = value
		return s, s.read()
	}
	for _, path := range Places(env) {
		s.From = path
		err := s.read()
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // some users have /dev/null for a home
			continue
		case errors.Is(err, fs.ErrPermission):
			err = fmt.Errorf("%w; correct HOME, if it is the folder of another user, or set %s", err, Variable)
		}
		return s, err
	}
	s.From = ""
	return s, nil
}

// IsText reports whether a value of the variable is the text of the settings, and not the path of their file.
func IsText(value string) bool {
	return strings.ContainsAny(value, "\n\r") || strings.Contains(value, ": ")
}

// Places returns the paths where the file may be. The first one that exists counts.
func Places(env Lookup) []string { return placesOn(runtime.GOOS, env) }

func placesOn(system string, env Lookup) (list []string) {
	for _, dir := range folders(system, env) {
		list = append(list, filepath.Join(dir, "dbjobs", "config.yaml"))
	}
	return list
}

// folders returns the folders in which programs of a system find their settings, those of the user first.
func folders(system string, env Lookup) (list []string) {
	if system == "windows" {
		if dir, _ := env("APPDATA"); dir != "" {
			list = append(list, dir)
		}
		return list
	}
	home, _ := env("HOME")
	if dir, _ := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) { // the XDG standard says to ignore a relative path
		list = append(list, dir)
	} else if filepath.IsAbs(home) {
		list = append(list, filepath.Join(home, ".config"))
	}
	if system == "darwin" && filepath.IsAbs(home) {
		list = append(list, filepath.Join(home, "Library", "Application Support"))
	}
	return append(list, "/etc")
}

func (s *Settings) read() error {
	f, info, err := settings.Open(s.From)
	if err != nil {
		return fmt.Errorf("host settings: %w", err)
	}
	defer f.Close()
	if why := writableByOthers(info); why != "" {
		return fmt.Errorf("host settings: %s: %s, so others could allow themselves anything; run chmod go-w on it, and give it to you or to root", s.From, why)
	}
	if why := replaceable(s.From); why != "" {
		return fmt.Errorf("host settings: %s: %s, so others could put a file of their own there; run chmod go-w on it, "+
			"and give it to you or to root", s.From, why)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return fmt.Errorf("host settings: %w", err)
	} else if len(data) > most {
		return fmt.Errorf("host settings: %s is longer than %d bytes", s.From, most)
	} else if len(bytes.TrimSpace(data)) == 0 { // as a full disk leaves it: the tick would go to another database
		return fmt.Errorf("host settings: %s is empty; a file without settings needs a remark, such as # none", s.From)
	}
	if err := s.decode(data); err != nil {
		return err
	}
	if at := s.inText(); at != nil && readableByOthers(info) {
		at.Text = fmt.Sprintf("holds a secret in a file that all users may read; chmod o-r %s, or keep the secret in a file of its own and name that", s.From)
		return &manifest.Error{Problems: []manifest.Problem{*at}}
	}
	return nil
}

func (s *Settings) decode(data []byte) (err error) {
	s.Host, err = manifest.DecodeHost(data, s.From)
	return err
}

// named matches a reference to a secret, which is a name and not the secret.
var named = lazyregexp.New(`\$\{secret:[^}]*\}`)

// inText returns the place of a secret that is in the settings themselves, or nil.
func (s *Settings) inText() *manifest.Problem {
	for _, o := range s.Secrets {
		if o.Text != "" {
			return &o.Place
		}
	}
	urls := []*manifest.Source{s.Database}
	for i := range s.Databases {
		urls = append(urls, &s.Databases[i].Source)
	}
	for i := range s.Owners {
		urls = append(urls, &s.Owners[i].Source)
	}
	for i := range s.Targets {
		urls = append(urls, &s.Targets[i].Source)
	}
	if b := s.Heartbeat; b != nil {
		for _, text := range []string{b.Text, b.Start, b.Success, b.Failure} {
			urls = append(urls, &manifest.Source{Text: named.ReplaceAllString(text, ""), Place: b.Place})
		}
	}
	for _, u := range urls {
		if u != nil && secret.HoldsURL(u.Text) {
			return &u.Place
		}
	}
	if s.Mail != nil && s.Mail.Password.Text != "" {
		return &s.Mail.Place
	}
	return nil
}

// DatabaseURL returns the URL of the database that the settings name, and the place where it is written. Both are
// empty if the settings name none. Several databases are an error.
func (s *Settings) DatabaseURL(ctx context.Context) (url, from string, err error) {
	switch {
	case len(s.Databases) > 1:
		return "", "", fmt.Errorf("%s names several databases: %s; choose one with --database NAME", s.From, strings.Join(s.DatabaseNames(), ", "))
	case len(s.Databases) == 1:
		return s.URL(ctx, s.Databases[0].Source)
	case s.Database != nil:
		return s.URL(ctx, *s.Database)
	}
	return "", "", nil
}

// DatabaseNames returns the names of the databases that tick and work serve.
func (s *Settings) DatabaseNames() (names []string) {
	for _, o := range s.Databases {
		names = append(names, o.Name)
	}
	return names
}

// OwnerNames returns the owners as which this host can log in.
func (s *Settings) OwnerNames() (names []string) {
	for _, o := range s.Owners {
		names = append(names, o.Name)
	}
	return names
}

// URL reads the URL of a database, and returns the place where it is written. It waits no longer than settings.Patiently allows.
func (s *Settings) URL(ctx context.Context, o manifest.Source) (url, from string, err error) {
	ctx, cancel := settings.Patiently(ctx)
	defer cancel()
	from = where(o.Place)
	if url, err = s.value(ctx, o); err != nil {
		return "", "", fmt.Errorf("%s: %w", from, err)
	}
	return url, from, nil
}

// Leaves returns what steps may touch, in the form that their executors use. known learns the secrets that are
// given to steps.
func (s *Settings) Leaves(known *secret.Known) *executor.Host {
	h := &executor.Host{Known: known, Settings: s.From, Secrets: map[string]executor.Secret{}, Targets: map[string]executor.Target{}}
	for _, p := range s.Programs {
		h.Programs = append(h.Programs, executor.Program{Path: p.Value, Owners: p.Owners})
	}
	for _, a := range s.Addresses {
		h.Addresses = append(h.Addresses, executor.Addresses{Range: netip.MustParsePrefix(a.Value), Owners: a.Owners})
	}
	for _, c := range s.Clouds {
		h.Clouds = append(h.Clouds, executor.Cloud{Name: c.Value, Owners: c.Owners})
	}
	for _, o := range s.Secrets {
		h.Secrets[o.Name] = executor.Secret{Value: s.reads(o.Source), Owners: o.Owners}
	}
	for _, name := range s.vars { // a variable takes precedence over the file, for the owners to whom the file offers the secret
		h.Secrets[name] = executor.Secret{Value: s.reads(manifest.Source{Variable: SecretPrefix + name}), Owners: h.Secrets[name].Owners}
	}
	for _, o := range s.Targets {
		h.Targets[o.Name] = executor.Target{URL: s.reads(o.Source), Owners: o.Owners}
	}
	h.Logins = map[string]executor.Read{}
	for _, o := range s.Owners {
		h.Logins[o.Name] = s.reads(o.Source)
	}
	if m := s.Mail; m != nil {
		h.Mailer = &executor.MailServer{Server: m.Server, Port: m.Port, TLS: m.TLS, User: m.User, From: m.From, Owners: m.Owners}
		if m.User != "" {
			h.Mailer.Password = s.reads(m.Password)
		}
	}
	return h
}

// Monitor returns the heartbeat of the host's passes, and what may be touched for it. The host's owner has written
// the address and the names of the secrets, so they need no permission.
func (s *Settings) Monitor(ctx context.Context, known *secret.Known) (executor.Heartbeat, *executor.Host, error) {
	b := s.Heartbeat
	h := s.Leaves(known)
	h.Own = true
	for name, secret := range h.Secrets {
		secret.Owners = nil
		h.Secrets[name] = secret
	}
	to := executor.Heartbeat{Start: b.Start, Success: b.Success, Failure: b.Failure}
	var err error
	if b.Given() {
		if to.URL, err = s.value(ctx, b.Source); err == nil {
			err = to.Check(manifest.HeartbeatFacts())
		}
	}
	return to, h, err
}

func (s *Settings) reads(from manifest.Source) executor.Read {
	return func(ctx context.Context) (string, error) { return s.value(ctx, from) }
}

// value reads a value from its source. It removes the line end of a file's last line.
func (s *Settings) value(ctx context.Context, from manifest.Source) (string, error) {
	v := from.Text
	switch {
	case from.Variable != "":
		v, _ = s.env(from.Variable)
		if v == "" {
			return "", fmt.Errorf("the variable %s is not set, or empty", from.Variable)
		}
	case from.AWSSecret != "":
		return s.secretOfAWS(ctx, from)
	case from.File != "":
		data, err := settings.File(ctx, from.File, most)
		if err != nil {
			return "", err
		}
		if v, err = settings.Text(data); err != nil {
			return "", fmt.Errorf("the file %s %w", from.File, err)
		}
		v = strings.TrimSuffix(strings.TrimSuffix(v, "\n"), "\r")
		if v == "" || len(data) > most {
			return "", fmt.Errorf("the file %s is empty, or longer than %d bytes", from.File, most)
		}
	}
	return v, nil
}

// secretOfAWS reads a secret of Secrets Manager, within the time limit of aws.Secret.
func (s *Settings) secretOfAWS(ctx context.Context, from manifest.Source) (string, error) {
	v, err := aws.Secret(ctx, aws.Lookup(s.env), from.AWSSecret)
	if err == nil && from.OfURL {
		v, err = settings.SecretURL(from.AWSSecret, v)
	}
	if v = strings.TrimSpace(v); v == "" && err == nil {
		err = fmt.Errorf("the secret %s is empty", from.AWSSecret)
	}
	return v, err
}

// secretVariables returns the names of the secrets among variables.
func secretVariables(environ []string) (names []string) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if name, found := strings.CutPrefix(name, SecretPrefix); found && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
