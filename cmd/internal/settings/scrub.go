package settings

import (
	"net/url"
	"slices"
	"strings"
	"sync"
)

// issued are the passwords that a Login has given out, as long as somebody could print them.
type issued struct {
	mu   sync.Mutex
	list []string
}

// issuedMost: a token for each of the connections of some passes; a server that quotes an older one is unheard of.
const issuedMost = 64

func (i *issued) add(password string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if password == "" || slices.Contains(i.list, password) {
		return
	}
	if len(i.list) == issuedMost {
		i.list = slices.Delete(i.list, 0, 1)
	}
	i.list = append(i.list, password)
}

func (i *issued) all() []string {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.list)
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
	for _, s := range append(d.secrets(), d.issued.all()...) {
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
