package executor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
)

// Host holds the permissions that the host of a pass gives to steps, and the services that it offers
// them. The owner of the host sets them. The nil Host and the zero Host allow nothing. A Host does not
// change while steps are executed.
type Host struct {
	// Own says that only the system user who executes definitions can write them. This user could do without dbjobs all that
	// a step does. So programs and addresses need no permission.
	Own bool

	Programs  []Program
	Addresses []Addresses
	Clouds    []Cloud
	Secrets   map[string]Secret
	Targets   map[string]Target
	Mailer    *MailServer
	Logins    map[string]Read // URLs of the store's database, by the owner as which each URL logs in
	Direct    *Direct         // nil: the SQL of jobs uses the connections of the store

	// Known collects each secret that is given out, so that the secret is hidden in every text. The store uses the same Known.
	Known *secret.Known
	// Settings says in messages where the settings are, such as their file; empty: "the host settings".
	Settings string
}

// Owners has the owners of jobs for whom a permission is; empty: the permission is for all owners.
type Owners []string

// Include reports whether the owner is one of them.
func (o Owners) Include(owner string) bool { return len(o) == 0 || slices.Contains(o, owner) }

// Read returns a text that is read when it is needed, such as a secret from a file that is replaced at each rotation. It waits no
// longer for a service, or for a file on a file server that is away, than ctx lasts.
type Read func(ctx context.Context) (string, error)

// within reads. An error after the end of ctx says why ctx has ended: the service that was asked is not to blame. It is an
// UnsentError, because a step reads all of its secrets before it begins. A failure of AWS that passes is no fault of the step.
func (r Read) within(ctx context.Context) (string, error) {
	v, err := r(ctx)
	if err != nil && ctx.Err() != nil {
		return "", &UnsentError{context.Cause(ctx)}
	}
	if _, passes := errors.AsType[aws.MomentaryError](err); passes {
		err = fmt.Errorf("%w: %w", ErrNothingDone, err)
	}
	return v, err
}

// Program is a permission to run a program, or all programs in a folder and below it.
type Program struct {
	Path   string // absolute
	Owners Owners
}

// Addresses are a permission to connect to the addresses of a range.
type Addresses struct {
	Range  netip.Prefix
	Owners Owners
}

// Cloud is a permission to use the identity of the process in a cloud: aws or gcp.
type Cloud struct {
	Name   string
	Owners Owners
}

// Secret is a value that definitions may name, but never contain.
type Secret struct {
	Value  Read
	Owners Owners
}

// Target is a named database other than the store's own.
type Target struct {
	URL    Read
	Owners Owners
}

// MailServer is the server that accepts the mails of jobs.
type MailServer struct {
	Server   string // its name or address
	Port     int
	TLS      string // starttls, tls or none
	User     string // empty: no login
	Password Read   // nil: none
	From     string
	Owners   Owners
}

// RefusedError says that the host does not allow, or does not offer, something that a step needs. It
// names the setting that would give the permission.
type RefusedError struct {
	What string // such as: the program /usr/bin/pg_dump
	Line string // of the settings that gives the permission
	In   string // the settings
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("this host does not allow %s; its owner may add to %s: %s", e.What, e.In, e.Line)
}

// Refused returns the error for something that the host does not allow. line is the setting that would give the
// permission, such as "addresses: [10.0.0.0/8]".
func (h *Host) Refused(what, line string) error {
	in := "the host settings (`dbjobs config check` says where they may be)"
	if h != nil && h.Settings != "" {
		in = "the host settings (" + h.Settings + ")"
	}
	return &RefusedError{what, line, in}
}

// Secret returns the value of a secret. From then on the value is hidden in all that is recorded and reported.
func (h *Host) Secret(ctx context.Context, owner, name string) (string, error) {
	if h == nil {
		h = &Host{}
	}
	s, found := h.Secrets[name]
	if !found || !s.Owners.Include(owner) {
		return "", h.Refused("the secret "+quoted(name), fmt.Sprintf("secrets: {%s: {value_file: …%s}}", name, also(s.Owners, owner, ", ")))
	}
	v, err := s.Value.within(ctx)
	if err != nil {
		return "", fmt.Errorf("the secret %s: %w", quoted(name), err)
	}
	h.Known.For(owner).Add(v)
	return v, nil
}

// secretReference matches a reference to a secret.
var secretReference = lazyregexp.New(`\$\{secret:([^}]*)\}`)

// addSecrets adds the secrets that a text names to the facts of an owner's step.
func (h *Host) addSecrets(ctx context.Context, owner, text string, facts map[string]any) error {
	for _, m := range secretReference.FindAllStringSubmatch(text, -1) {
		v, err := h.Secret(ctx, owner, m[1])
		if err != nil {
			return err
		}
		facts["secret:"+m[1]] = v
	}
	return nil
}

// CheckSecrets refuses a text that names a secret that the owner does not get, or a secret that cannot be read.
func (h *Host) CheckSecrets(ctx context.Context, owner, text string) error {
	return h.addSecrets(ctx, owner, text, map[string]any{})
}

// hide removes secrets from a text of an owner's job. It is called before the text is cut: a part of a secret would not be found any more.
func (h *Host) hide(owner, text string) string {
	if h == nil {
		h = &Host{}
	}
	return h.Known.For(owner).Hide(text)
}

// AllowsAddress reports whether the owner's steps may connect to an address that is not public.
func (h *Host) AllowsAddress(owner string, a netip.Addr) bool {
	if h == nil {
		return false
	}
	a = a.Unmap().WithZone("")
	return h.Own || slices.ContainsFunc(h.Addresses, func(l Addresses) bool {
		return l.Range.Contains(a) && l.Owners.Include(owner)
	})
}

// AllowsCloud refuses steps that would use the identity of the process in a cloud, if the owner has no permission. The permission is
// needed even if only the user of the process writes definitions: requests are sent to others.
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

// AllowsProgram returns the path by which the program is to be run, or a refusal. A permission for a program covers only the name
// in the permission: a link with another name to the same file could act as another program. A permission for a folder covers the files
// that are in the folder after all links are followed. A problem of a file is reported only to owners who have a permission for
// its name: others would learn which files exist.
func (h *Host) AllowsProgram(owner, path string) (string, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return "", fmt.Errorf("the program %s is not named by an absolute path of this system, without \".\" and \"..\"", quoted(path))
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
	for _, l := range h.inOrder(path) {
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
		case err != nil && mine && l.names(path):
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

// inOrder returns the permissions, and first those whose path names the program. Others are rarely looked at then: a file server that
// has their files may be away.
func (h *Host) inOrder(path string) (list []Program) {
	for _, first := range []bool{true, false} {
		for _, l := range h.Programs {
			if l.names(path) == first {
				list = append(list, l)
			}
		}
	}
	return list
}

// names reports whether the path of the permission is that of the program, or of a folder above it. No link is followed.
func (l Program) names(path string) bool {
	return path == l.Path || strings.HasPrefix(path, strings.TrimSuffix(l.Path, separator)+separator)
}

// evalSymlinks follows all links of a path. A variable for tests.
var evalSymlinks = filepath.EvalSymlinks

// resolve returns the program's name in a folder without links, and the file to which that name leads.
func resolve(path string) (named, file string, err error) {
	folder, err := evalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", "", err
	}
	named = filepath.Join(folder, filepath.Base(path))
	file, err = evalSymlinks(named)
	return named, file, err
}

// Check returns an error if the program, or everything in the folder, could not be run.
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

// covers returns the path by which a program is run under the permission; empty: the permission does not cover it. named is the
// program's name in a folder without links; file is the file to which that name leads.
func (l Program) covers(named, file string) string {
	folder, err := evalSymlinks(filepath.Dir(l.Path))
	if err != nil {
		return ""
	}
	if allowed := filepath.Join(folder, filepath.Base(l.Path)); samePath(allowed, named) {
		return allowed
	}
	if folder, err = evalSymlinks(l.Path); err == nil && strings.HasPrefix(file, strings.TrimSuffix(folder, separator)+separator) {
		return file
	}
	return ""
}

// Target returns the URL of the database of that name.
func (h *Host) Target(ctx context.Context, owner, name string) (string, error) {
	if h == nil {
		h = &Host{}
	}
	t, found := h.Targets[name]
	if !found || !t.Owners.Include(owner) {
		return "", h.Refused("the target "+quoted(name), fmt.Sprintf("targets: {%s: {url_file: …%s}}", name, also(t.Owners, owner, ", ")))
	}
	v, err := t.URL.within(ctx)
	if err != nil {
		return "", fmt.Errorf("the target %s: %w", quoted(name), err)
	}
	h.Known.For(owner).AddURL(v)
	return v, nil
}

// Mail returns the server that accepts the owner's mails.
func (h *Host) Mail(owner string) (*MailServer, error) {
	switch {
	case h == nil || h.Mailer == nil:
		return nil, h.Refused("mail", "mail: {server: …, from: …}")
	case !h.Mailer.Owners.Include(owner):
		return nil, h.Refused("mail", "mail: {"+also(h.Mailer.Owners, owner, "")+"}")
	}
	m := *h.Mailer
	if read := m.Password; read != nil {
		m.Password = func(ctx context.Context) (string, error) {
			v, err := read.within(ctx)
			if err == nil {
				h.Known.For(owner).Use(v)
			}
			return v, err
		}
	}
	return &m, nil
}

// also returns the text for the owners of a permission with one more owner; empty if the permission is for all.
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
