package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
)

// held is a secret as Secrets Manager keeps it. It is either the URL itself, or the JSON that RDS and its
// rotation write. A secret that RDS manages has only user and password.
type held struct {
	Engine   string      `json:"engine"`
	Host     string      `json:"host"`
	Port     json.Number `json:"port"`
	Username string      `json:"username"`
	Password string      `json:"password"`
	Database string      `json:"dbname"`
	url      string
}

func readHeld(id, text string) (held, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return held{}, fmt.Errorf("the secret %s is empty", id)
	}
	if !strings.HasPrefix(text, "{") {
		return held{url: text}, nil
	}
	var h held
	if err := json.Unmarshal([]byte(text), &h); err != nil { // the text of err may quote the secret
		return held{}, fmt.Errorf("the secret %s is not valid JSON, or its members are not of the type that RDS writes", id)
	}
	if h.Username == "" || h.Password == "" {
		return held{}, fmt.Errorf("the secret %s has no username, or no password", id)
	}
	return h, nil
}

// login returns user and password of the secret.
func (h held) login() (user, password string, err error) {
	if h.url == "" {
		return h.Username, h.Password, nil
	}
	u, err := secret.ParseURL(h.url)
	if err != nil {
		return "", "", fmt.Errorf("the secret holds neither JSON nor a URL: %w", err)
	}
	user, password = secret.Login(u)
	return user, password, nil
}

// address returns the URL of a secret that also names the database.
func (h held) address(id string) (string, error) {
	if h.url != "" {
		return h.url, nil
	}
	schemes := map[string]string{"postgres": "postgres", "postgresql": "postgres", "aurora-postgresql": "postgres",
		"mysql": "mysql", "mariadb": "mysql", "aurora-mysql": "mysql", "aurora": "mysql", "sqlserver": "sqlserver"}
	if h.Host == "" || h.Database == "" || schemes[h.Engine] == "" {
		return "", fmt.Errorf("the secret %s does not name engine, host and dbname (secrets that RDS manages never do)", id)
	}
	u := url.URL{Scheme: schemes[h.Engine], Host: h.Host, Path: "/" + h.Database, User: url.User(h.Username)}
	if h.Engine == "sqlserver" { // in its path is the name of an instance
		u.Path, u.RawQuery = "", url.Values{"database": {h.Database}}.Encode()
	}
	if h.Port != "" {
		u.Host = net.JoinHostPort(h.Host, h.Port.String())
	}
	return u.String(), nil
}

// SecretURL returns the URL that the text of a secret holds. If the text has the members that RDS writes, it
// makes the URL of them. No error holds the text.
func SecretURL(id, text string) (string, error) {
	h, err := readHeld(id, text)
	if err != nil || h.url != "" {
		return h.url, err
	}
	raw, err := h.address(id)
	if err != nil {
		return "", fmt.Errorf("%w; keep the whole URL in a secret", err)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", fmt.Errorf("the secret %s: its host or port is not valid", id)
	}
	u.User = url.UserPassword(h.Username, h.Password)
	return u.String(), nil
}

// secretFresh is how long a secret is used before it is read again: a pass opens several connections.
var secretFresh = 30 * time.Second // a variable for tests

// fresh returns a function that reads a value, and gives the last one for as long as secretFresh. last was read at the instant
// at; zero: it was not read.
func fresh[T any](last T, at time.Time, read func(context.Context) (T, error)) func(context.Context) (T, error) {
	turn := make(chan struct{}, 1) // for the connection that asks; who waits for it waits no longer than ctx lasts
	return func(ctx context.Context) (T, error) {
		var none T
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
		if !at.IsZero() && time.Since(at) < secretFresh {
			return last, nil
		}
		v, err := read(ctx)
		if err != nil {
			return none, err
		}
		last, at = v, time.Now()
		return v, nil
	}
}

// followPatience is how long a new connection waits for a password that may have changed. A variable for tests.
var followPatience = 5 * time.Second

// Follow lets new connections log in with the password that the URL has now, in the place from which again reads it: a process
// may live longer than a password. The password stays as it is while that place cannot be read, as when its file is being
// written, and where it names another database or another login: that is for the next process.
func (d *Database) Follow(again func(context.Context) (string, error)) {
	first, err := secret.ParseURL(d.URL)
	if err != nil || d.Login != nil {
		return
	}
	user, password := secret.Login(first)
	if password == "" { // it is not in the URL, but in a file of the driver
		return
	}
	read := fresh(password, time.Now(), func(ctx context.Context) (string, error) {
		soon, cancel := context.WithTimeout(ctx, followPatience)
		defer cancel()
		raw, err := again(soon)
		if err != nil && ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		raw = strings.TrimSpace(raw)
		now, wrong := secret.ParseURL(raw)
		if err != nil || wrong != nil {
			return password, nil // as said above
		}
		if who, other := secret.Login(now); who == user && withoutLogin(now) == withoutLogin(first) && other != "" && other != password {
			d.secrets.AddURL(raw)
			password = other
		}
		return password, nil
	})
	d.Login = func(ctx context.Context) (string, string, error) {
		password, err := read(ctx)
		return user, password, err
	}
}

// withoutLogin returns the URL without user and password.
func withoutLogin(u *url.URL) string {
	bare, options := *u, u.Query()
	options.Del("user")
	options.Del("password")
	bare.User, bare.RawQuery = nil, options.Encode()
	return bare.String()
}

// fromSecret takes user and password from a secret. If the environment has no URL, it takes the URL from there,
// too. A long-lived process reads user and password again for new connections, because secrets are rotated.
func (d *Database) fromSecret(ctx context.Context, env Lookup, id string) error {
	read := fresh(held{}, time.Time{}, func(ctx context.Context) (held, error) {
		text, err := aws.Secret(ctx, aws.Lookup(env), id)
		if err != nil {
			return held{}, fmt.Errorf("%s: %w", SecretVariable, err)
		}
		h, err := readHeld(id, text)
		if err != nil {
			return held{}, fmt.Errorf("%s: %w", SecretVariable, err)
		}
		return h, nil
	})
	h, err := read(ctx)
	if err != nil {
		return err
	}
	d.secrets.AddURL(h.url)
	if d.URL == "" {
		if d.URL, err = h.address(id); err != nil {
			return fmt.Errorf("%s: %w; put the URL without user and password into %s", SecretVariable, err, URLVariable)
		}
	}
	d.Login = func(ctx context.Context) (string, string, error) {
		h, err := read(ctx)
		if err != nil {
			return "", "", err
		}
		user, password, err := h.login()
		d.secrets.Issue(password)
		return user, password, err
	}
	_, _, err = d.Login(ctx)
	return err
}

// authenticate sets up a login without a password, as DBJOBS_DATABASE_AUTH names it.
func (d *Database) authenticate(how string, env Lookup) error {
	switch {
	case how == "":
		return lost(AuthVariable, "")
	case how != "rds-iam":
		return fmt.Errorf("found %.80q, want rds-iam; or unset it", how)
	case d.Login != nil:
		return fmt.Errorf("rds-iam creates the password; unset %s", SecretVariable)
	}
	u, err := url.Parse(d.URL)
	if err != nil || u.Hostname() == "" || u.User.Username() == "" {
		return errors.New("rds-iam wants a URL with user and host, and without a password")
	}
	if _, has := u.User.Password(); has {
		return errors.New("rds-iam creates the password; take it out of the URL")
	}
	e, err := engine.Of(d.URL)
	if err != nil {
		return err
	}
	if !e.Encrypted(u) {
		return errors.New("rds-iam sends a token, so it needs an encrypted and verified connection; add sslmode=verify-full&sslrootcert=FILE to a postgres:// URL, ssl-ca=FILE to a mysql:// one")
	}
	region, err := aws.RegionOf(u.Hostname(), aws.Lookup(env))
	if err != nil {
		return err
	}
	port := u.Port()
	if port == "" {
		port = strconv.Itoa(e.Port)
	}
	address, user := net.JoinHostPort(u.Hostname(), port), u.User.Username()
	source := aws.NewSource(aws.Lookup(env))
	d.Login = func(ctx context.Context) (string, string, error) {
		c, err := source.Credentials(ctx, time.Now()) // read again for each connection: they expire, and Lambda replaces them while a function lives
		if err != nil {
			return "", "", err
		}
		token := aws.RDSToken(c, region, address, user, time.Now())
		d.secrets.Issue(token)
		return user, token, nil
	}
	return nil
}
