package manifest

import (
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Host is the file with the settings of a host. It is read and checked like a file of definitions. It has the
// values as they were written: no file, variable or secret that it names was looked up.
type Host struct {
	Database  *Source
	Databases []Offer // for tick and work, which serve all; they have no owners
	Owners    []Offer // each name is a login, whose jobs are executed as that login
	Targets   []Offer
	Programs  []Permission // absolute paths of programs and folders
	Addresses []Permission // ranges, as netip.ParsePrefix reads them
	Clouds    []Permission // clouds in which steps may act with the credentials of the process: aws, gcp
	Secrets   []Offer
	Mail      *Mail
	Heartbeat *Heartbeat
	On        store.Hooks
}

// Source says where a value comes from: one of its texts is set. If none is set, the file leaves the value
// open.
type Source struct {
	Text, File, Variable string
	AWSSecret            string  // the ARN or the name of a secret of AWS Secrets Manager
	OfURL                bool    // the value is the URL of a database; then a secret may hold the URL in parts, as RDS writes them
	Place                Problem // without a text
}

// Given reports whether the file says where the value comes from.
func (s *Source) Given() bool {
	return s.Text != "" || s.File != "" || s.Variable != "" || s.AWSSecret != ""
}

// Offer is a value with a name.
type Offer struct {
	Name   string
	Owners []string // none: all
	Source
}

// Permission is something that steps are allowed to touch.
type Permission struct {
	Value  string
	Owners []string // none: all
	Place  Problem  // without a text
}

// Mail is the server for mails.
type Mail struct {
	Server, TLS, User, From string
	Port                    int
	Password                Source
	Owners                  []string // none: all
	Place                   Problem  // without a text
}

// Heartbeat is the service that hears of a pass: one URL, or one for each signal.
type Heartbeat struct {
	Source
	Start, Success, Failure string
}

// DecodeHost reads the settings of a host. An empty file sets nothing. The error is an *Error.
func DecodeHost(data []byte, file string) (*Host, error) {
	d := &decoder{file: file, length: len(data), ofHost: true}
	h := &Host{}
	if d.crowded(data) {
		d.problem(nil, "", "may hold more than %d values", d.mostMarks())
	} else if root := d.document(data); root != nil {
		d.mapping(root, "", []field{
			{"database", source("url", &h.Database)},
			{"databases", offers("url", &h.Databases, offerName, false)},
			{"owners", offers("url", &h.Owners, store.CheckOwner, false)},
			{"targets", offers("url", &h.Targets, offerName, true)},
			{"programs", permissions("path", &h.Programs, programPath)},
			{"addresses", permissions("range", &h.Addresses, addressRange)},
			{"clouds", permissions("cloud", &h.Clouds, cloudName)},
			{"secrets", offers("value", &h.Secrets, offerName, true)},
			{"mail", h.readMail},
			{"heartbeat", h.readHeartbeat},
			{"on", h.readHooks},
		})
		if h.Database != nil && len(h.Databases) > 0 {
			d.problem(root, "databases", "cannot be combined with database; add that database here, with a name")
		}
	}
	if len(d.problems) > 0 {
		return nil, bounded(d.problems)
	}
	return h, nil
}

// place returns where a value stands in the file.
func (d *decoder) place(n *yaml.Node, path string) Problem {
	return Problem{File: d.file, Line: n.Line, Column: n.Column, Path: path}
}

// sources returns the keys that say where a value comes from: key, key_file, key_env and key_aws_secret. One of
// them may be set.
func (s *Source) sources(key string) []field {
	return []field{{key, text(&s.Text)}, {key + "_file", absolute(&s.File, "file")}, {key + "_env", text(&s.Variable)},
		{key + "_aws_secret", text(&s.AWSSecret)}}
}

// one refuses several sources, and refuses no source if a value is needed.
func (s *Source) one(d *decoder, n *yaml.Node, path, key string, needed bool) {
	given := 0
	for _, text := range []string{s.Text, s.File, s.Variable, s.AWSSecret} {
		if text != "" {
			given++
		}
	}
	switch {
	case given > 1:
		d.problem(n, path, "has more than one of %s, %s_file, %s_env and %s_aws_secret", key, key, key, key)
	case given == 0 && needed:
		d.problem(n, path, "needs %s_file, %s_env, %s_aws_secret or %s", key, key, key, key)
	}
}

// source reads a text, or a mapping that says where the text comes from.
func source(key string, into **Source) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		*into = &Source{}
		readSource(d, n, path, key, *into, nil)
	}
}

func readSource(d *decoder, n *yaml.Node, path, key string, s *Source, more []field) {
	n, ok := d.enter(n, path)
	if !ok {
		return
	}
	s.Place, s.OfURL = d.place(n, path), key == "url"
	before := len(d.problems)
	if n.Kind != yaml.MappingNode {
		text(&s.Text)(d, n, path)
	} else {
		d.mapping(n, path, append(s.sources(key), more...))
	}
	if len(d.problems) == before {
		s.one(d, n, path, key, true)
	}
}

// offerName refuses names that a database, secret or target may not have. A reference ${secret:NAME} and a variable
// can contain the others.
func offerName(name string) error {
	if !plainName.MatchString(name) {
		return errors.New("a name has letters, digits, _ and -, and begins with no digit")
	}
	return nil
}

var plainName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]{0,99}$`)

// offers reads values with names. check returns what is wrong with a name. If owned is set, each may name its owners.
func offers(key string, into *[]Offer, check func(string) error, owned bool) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		for _, p := range d.pairs(n, path, "a mapping of names") {
			o, at := Offer{Name: p.key.Value}, join(path, p.key.Value)
			if err := check(o.Name); err != nil {
				d.problem(p.key, at, "%v", err)
			}
			var more []field
			if owned {
				more = []field{{"owners", texts(&o.Owners)}}
			}
			readSource(d, p.value, at, key, &o.Source, more)
			*into = append(*into, o)
		}
	}
}

// permissions reads a list of texts, or of mappings with that text and its owners. check returns what is wrong with
// a text.
func permissions(key string, into *[]Permission, check func(string) (string, error)) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		for i, c := range d.items(n, path) {
			at := fmt.Sprintf("%s[%d]", path, i)
			c, ok := d.enter(c, at)
			if !ok {
				return
			}
			l := Permission{Place: d.place(c, at)}
			before := len(d.problems)
			if c.Kind == yaml.MappingNode {
				d.mapping(c, at, []field{{key, text(&l.Value)}, {"owners", texts(&l.Owners)}})
			} else {
				text(&l.Value)(d, c, at)
			}
			if len(d.problems) > before {
				continue
			}
			checked, err := check(l.Value)
			if err != nil {
				d.problem(c, at, "%v", err)
			}
			l.Value = checked
			*into = append(*into, l)
		}
	}
}

func programPath(path string) (string, error) {
	const separator = string(filepath.Separator)
	given := filepath.FromSlash(path)
	clean := filepath.Clean(given)
	if !filepath.IsAbs(given) || clean != given && clean+separator != given {
		return "", fmt.Errorf("found %s, want the absolute path of a program or a folder, without \".\" and \"..\"", excerpt(path))
	}
	return clean, nil
}

// addressRange reads a range, or a single address as a range of one. It refuses host names: another answer of a
// name server would allow another address.
func addressRange(text string) (string, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()).String(), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return "", fmt.Errorf("found %s, want a range of addresses such as 10.0.0.0/8, or one address; host names are not allowed, because their addresses can change", excerpt(text))
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 { // addresses are looked up in their short form
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p.Masked() != p {
		return "", fmt.Errorf("found %s, which is an address within a range; the range is %s", excerpt(text), p.Masked())
	}
	return p.String(), nil
}

func cloudName(name string) (string, error) {
	if known := []string{"aws", "gcp"}; !slices.Contains(known, name) {
		return "", fmt.Errorf("found %s; %s", excerpt(name), oneOf(name, known))
	}
	return name, nil
}

func absolute(into *string, what string) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		text(into)(d, n, path)
		if *into != "" && !filepath.IsAbs(*into) {
			d.problem(n, path, "found %s, want the absolute path of a %s", excerpt(*into), what)
		}
	}
}

func (h *Host) readMail(d *decoder, n *yaml.Node, path string) {
	m := &Mail{TLS: "starttls", Port: 587, Place: d.place(n, path)}
	before := len(d.problems)
	d.mapping(n, path, append([]field{{"server", text(&m.Server)}, {"port", number(&m.Port, 1, 65535)}, {"tls", choice(&m.TLS, "starttls", "tls", "none")},
		{"user", text(&m.User)}, {"from", text(&m.From)}, {"owners", texts(&m.Owners)}}, m.Password.sources("password")...))
	if len(d.problems) == before {
		m.Password.one(d, n, path, "password", m.User != "")
	}
	if len(d.problems) == before && m.User == "" && m.Password.Given() { // mails would go out without a login
		d.problem(n, path, "has a password and no user; add user, or take the password away")
	}
	if len(d.problems) == before && (m.Server == "" || m.From == "") {
		d.problem(n, path, "needs server and from")
	}
	if len(d.problems) == before {
		m.check(d, n, path)
	}
	h.Mail = m
}

// check refuses a server or a sender with which no mail could be sent.
func (m *Mail) check(d *decoder, n *yaml.Node, path string) {
	if _, err := netip.ParseAddr(m.Server); err != nil && strings.ContainsAny(m.Server, ":/ ") {
		d.problem(n, join(path, "server"),
			"found %s, want a name or an address alone; port and tls are keys beside it", excerpt(m.Server))
	}
	if _, err := mail.ParseAddress(m.From); err != nil {
		d.problem(n, join(path, "from"), "found %s, want an address such as jobs@example.org", excerpt(m.From))
	}
}

// HeartbeatFacts returns what the URLs of a host's heartbeat may refer to, besides secrets and the message.
func HeartbeatFacts() []string { return []string{"id", "name"} }

func (h *Host) readHeartbeat(d *decoder, n *yaml.Node, path string) {
	n, ok := d.enter(n, path)
	if !ok {
		return
	}
	b := &Heartbeat{}
	before := len(d.problems)
	d.places = map[string]*yaml.Node{}
	defer func() { d.places = nil }()
	if b.Place = d.place(n, path); n.Kind == yaml.MappingNode {
		d.mapping(n, path, append(b.sources("url"), field{"start", text(&b.Start)}, field{"success", text(&b.Success)}, field{"failure", text(&b.Failure)}))
	} else {
		text(&b.Text)(d, n, path)
	}
	of := executor.Heartbeat{URL: b.Text, Start: b.Start, Success: b.Success, Failure: b.Failure}
	if len(d.problems) == before {
		b.one(d, n, path, "url", of == executor.Heartbeat{})
	}
	if len(d.problems) > before {
		return
	}
	if b.Text == "" && b.Given() {
		of.URL = "https://localhost" // the real URL is checked when it is read
	}
	if wrong, ok := errors.AsType[*executor.KeyError](of.Check(HeartbeatFacts())); ok {
		at, where, err := d.below(n, path, wrong)
		d.problem(at, where, "%v", err)
	}
	h.Heartbeat = b
}

func (h *Host) readHooks(d *decoder, n *yaml.Node, path string) {
	var j store.Job
	section("on").read(&j)(d, n, path)
	h.On = j.On
	for event, hook := range h.On.All() {
		if err := store.CheckHook(*hook); err != nil {
			d.problem(n, join(path, event), "%v", err)
		}
	}
}
