package executor

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/secret"
)

// Host is what the host of a pass allows steps to touch, and what it offers them, as its owner has set it. The nil and the
// zero Host allow nothing. Nothing of it changes while steps are executed.
type Host struct {
	// Own: only the very user of the system that executes definitions can write them, and he could do all that a step
	// does by himself. His programs and addresses need no leave.
	Own bool

	Programs  []Program
	Addresses []Addresses
	Clouds    []Cloud
	Secrets   map[string]Secret
	Targets   map[string]Target
	Mailer    *MailServer
	Logins    map[string]Read // URLs of the store's database, each for the owner as whom it logs in
	Direct    *Direct         // nil: the SQL of jobs goes the store's way

	// Known gets each secret that is given out, so that it is hidden wherever it comes up. The store has the same one.
	Known *secret.Known
	// Settings names the settings for people, such as their file; empty: "the host settings".
	Settings string
}

// Owners are the owners of jobs whom a leave is for. None: it is for all.
type Owners []string

// Include reports whether the owner is one of them.
func (o Owners) Include(owner string) bool { return len(o) == 0 || slices.Contains(o, owner) }

// Read gives a text that is read when it is needed, such as a secret from the file that is replaced when it is rotated.
type Read func() (string, error)

// Program is a leave to run a program, or all programs in a folder and below it.
type Program struct {
	Path   string // absolute
	Owners Owners
}

// Addresses are a leave to connect to the addresses of a range.
type Addresses struct {
	Range  netip.Prefix
	Owners Owners
}

// Cloud is a leave to act as the process does in a cloud: aws or gcp.
type Cloud struct {
	Name   string
	Owners Owners
}

// Secret is a value that definitions may name, and never hold.
type Secret struct {
	Value  Read
	Owners Owners
}

// Target is a database by its name, beside the store's own.
type Target struct {
	URL    Read
	Owners Owners
}

// MailServer takes the mails of jobs.
type MailServer struct {
	Server   string // its name or address
	Port     int
	TLS      string // starttls, tls or none
	User     string // empty: no login
	Password Read   // nil: none
	From     string
	Owners   Owners
}

// RefusedError says that the host does not allow, or does not offer, what a step needs, and what would give the leave.
type RefusedError struct {
	What string // such as: the program /usr/bin/pg_dump
	Line string // of the settings that gives the leave
	In   string // the settings
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("this host does not allow %s; its owner may add to %s: %s", e.What, e.In, e.Line)
}

// Refused is the refusal of what the host does not allow. line is what would give the leave, such as
// "addresses: [10.0.0.0/8]".
func (h *Host) Refused(what, line string) error {
	in := "the host settings (`dbjobs config check` says where they may be)"
	if h != nil && h.Settings != "" {
		in = "the host settings (" + h.Settings + ")"
	}
	return &RefusedError{what, line, in}
}

// Secret is the value of the secret of that name. From then on it is hidden in all that is recorded and told.
func (h *Host) Secret(owner, name string) (string, error) {
	if h == nil {
		h = &Host{}
	}
	s, found := h.Secrets[name]
	if !found || !s.Owners.Include(owner) {
		return "", h.Refused("the secret "+quoted(name), fmt.Sprintf("secrets: {%s: {value_file: …%s}}", name, also(s.Owners, owner, ", ")))
	}
	v, err := h.issue(s.Value)
	if err != nil {
		return "", fmt.Errorf("the secret %s: %w", quoted(name), err)
	}
	return v, nil
}

// secretReference is a reference to a secret.
var secretReference = lazyregexp.New(`\$\{secret:([^}]*)\}`)

// addSecrets puts the secrets that a text names among the facts of an owner's step.
func (h *Host) addSecrets(owner, text string, facts map[string]any) error {
	for _, m := range secretReference.FindAllStringSubmatch(text, -1) {
		v, err := h.Secret(owner, m[1])
		if err != nil {
			return err
		}
		facts["secret:"+m[1]] = v
	}
	return nil
}

// CheckSecrets refuses a text that names a secret which the owner does not get, or which cannot be read.
func (h *Host) CheckSecrets(owner, text string) error {
	return h.addSecrets(owner, text, map[string]any{})
}

// issue reads a value that is secret.
func (h *Host) issue(read Read) (string, error) {
	v, err := read()
	if err == nil {
		h.Known.Add(v)
	}
	return v, err
}

// hide takes secrets out of a text before it is cut: a part of one would not be found any more.
func (h *Host) hide(text string) string {
	if h == nil {
		h = &Host{}
	}
	return h.Known.Hide(text)
}

// AllowsAddress reports whether the owner's steps may connect to the address although it is none of the public ones.
func (h *Host) AllowsAddress(owner string, a netip.Addr) bool {
	if h == nil {
		return false
	}
	a = a.Unmap().WithZone("")
	return h.Own || slices.ContainsFunc(h.Addresses, func(l Addresses) bool {
		return l.Range.Contains(a) && l.Owners.Include(owner)
	})
}

// AllowsCloud refuses steps that would act as the process does in a cloud, where the owner has no leave. It is needed also
// where only the user of the process writes definitions: requests are sent to others.
func (h *Host) AllowsCloud(owner, name string) error {
	if h == nil {
		h = &Host{}
	}
	var others Owners
	for _, l := range h.Clouds {
		if l.Name == name && l.Owners.Include(owner) {
			return nil
		} else if l.Name == name {
			others = append(others, l.Owners...)
		}
	}
	line := fmt.Sprintf("clouds: [%s]", name)
	if others != nil {
		line = fmt.Sprintf("clouds: [{cloud: %s%s}]", name, also(others, owner, ", "))
	}
	return h.Refused("to act as it does in the cloud "+name, line)
}

// AllowsProgram is the path by which the program is to be run, or the refusal. The leave for a program is for the name that
// it gives: a link by another name to the same file could be another program. One for a folder is for what is in the folder
// once all links are followed. What is wrong with a file is reported only to those who have a leave for its name: others
// would learn which files there are.
func (h *Host) AllowsProgram(owner, path string) (string, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return "", fmt.Errorf("the program %s is not named by an absolute path without \".\" and \"..\"", quoted(path))
	}
	if h == nil {
		h = &Host{}
	}
	named, file, err := resolve(path)
	if err == nil && h.Own {
		return named, nil
	}
	told := h.Own
	var others Owners
	for _, l := range h.Programs {
		run, mine := "", l.Owners.Include(owner)
		if err == nil {
			run = l.covers(named, file)
		}
		switch {
		case run != "" && mine:
			if why := replaceable(named); why != "" {
				return "", fmt.Errorf("the program %s: %s; chmod o-w it, or put the program elsewhere", quoted(path), why)
			}
			return run, nil
		case run != "":
			others = append(others, l.Owners...)
		case err != nil && mine && (path == l.Path || strings.HasPrefix(path, strings.TrimSuffix(l.Path, separator)+separator)):
			told = true
		}
	}
	if told {
		return "", fmt.Errorf("the program %s: %w", quoted(path), err)
	}
	line := fmt.Sprintf("programs: [%s]", path)
	if others != nil {
		line = fmt.Sprintf("programs: [{path: %s%s}]", path, also(others, owner, ", "))
	}
	return "", h.Refused("the program "+quoted(path), line)
}

// resolve is the program's name in a folder without links, and the file that it leads to.
func resolve(path string) (named, file string, err error) {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", "", err
	}
	named = filepath.Join(folder, filepath.Base(path))
	file, err = filepath.EvalSymlinks(named)
	return named, file, err
}

// Check is what would keep the program, or all of a folder, from being run.
func (l Program) Check() error {
	named, _, err := resolve(l.Path)
	if err != nil {
		return err
	}
	if why := replaceable(named); why != "" {
		return fmt.Errorf("%s; chmod o-w it", why)
	}
	return nil
}

const separator = string(filepath.Separator)

// covers is the path by which a program is run under the leave; empty: the leave is not for it. named is the program's name
// in a folder without links, file is what it leads to.
func (l Program) covers(named, file string) string {
	folder, err := filepath.EvalSymlinks(filepath.Dir(l.Path))
	if err != nil {
		return ""
	}
	if filepath.Join(folder, filepath.Base(l.Path)) == named {
		return named
	}
	if folder, err = filepath.EvalSymlinks(l.Path); err == nil && strings.HasPrefix(file, strings.TrimSuffix(folder, separator)+separator) {
		return file
	}
	return ""
}

// Target is the URL of the database of that name.
func (h *Host) Target(owner, name string) (string, error) {
	if h == nil {
		h = &Host{}
	}
	t, found := h.Targets[name]
	if !found || !t.Owners.Include(owner) {
		return "", h.Refused("the target "+quoted(name), fmt.Sprintf("targets: {%s: {url_file: …%s}}", name, also(t.Owners, owner, ", ")))
	}
	v, err := t.URL()
	if err != nil {
		return "", fmt.Errorf("the target %s: %w", quoted(name), err)
	}
	h.Known.AddURL(v)
	return v, nil
}

// Mail is the server that takes the owner's mails.
func (h *Host) Mail(owner string) (*MailServer, error) {
	switch {
	case h == nil || h.Mailer == nil:
		return nil, h.Refused("mail", "mail: {server: …, from: …}")
	case !h.Mailer.Owners.Include(owner):
		return nil, h.Refused("mail", "mail: {"+also(h.Mailer.Owners, owner, "")+"}")
	}
	m := *h.Mailer
	if read := m.Password; read != nil {
		m.Password = func() (string, error) { return h.issue(read) }
	}
	return &m, nil
}

// also are the owners of a leave with another one, as they are to be written; empty where the leave is for all.
func also(o Owners, owner, before string) string {
	if len(o) == 0 {
		return ""
	}
	if owner == "" { // as on SQLite, where no job has one
		owner = `""`
	}
	return fmt.Sprintf("%sowners: [%s]", before, strings.Join(append(slices.Clone(o), owner), ", "))
}

func quoted(name string) string { return fmt.Sprintf("%.200q", name) }
