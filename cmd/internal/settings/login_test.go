//go:build unix

package settings

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestURLFile: the URL comes from a file, as platforms mount secrets.
func TestURLFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good", "postgres://ann:geheim@h/d\n")
	linked, pipe := filepath.Join(dir, "linked"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink(good, linked), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env      map[string]string
		url, err string
	}{
		{map[string]string{FileVariable: good}, "postgres://ann:geheim@h/d", ""},
		{map[string]string{FileVariable: good, URLVariable: "sqlite:x"}, "", "both set"},
		{map[string]string{FileVariable: linked}, "postgres://ann:geheim@h/d", ""}, // in the way in which Kubernetes mounts secrets
		{map[string]string{FileVariable: pipe}, "", "no regular file"},
		{map[string]string{FileVariable: "/dev/zero"}, "", "no regular file"},
		{map[string]string{FileVariable: dir}, "", "no regular file"},
		{map[string]string{FileVariable: write("long", "postgres://"+strings.Repeat("geheim", fileMost/6))}, "", "longer than"},
		{map[string]string{FileVariable: write("notepad", "\ufeffpostgres://ann:geheim@h/d\r\n")}, "postgres://ann:geheim@h/d", ""},
		{map[string]string{FileVariable: write("powershell", "\xff\xfes\x00q\x00l\x00")}, "", "save it as UTF-8"},
		{map[string]string{FileVariable: ""}, "", "set but empty"},
		{map[string]string{FileVariable: write("empty", " \n")}, "", "is empty"},
		{map[string]string{FileVariable: filepath.Join(dir, "none")}, "", "no such file"},
		{map[string]string{FileVariable: write("bad", "geheim")}, "", FileVariable + ": not the URL"},
	} {
		d, err := Find(t.Context(), "", false, lookup(c.env), nil)
		if c.err == "" && (err != nil || d.URL != c.url) {
			t.Errorf("%v: %q, %v", c.env, d.URL, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("%v: %v, want %q", c.env, err, c.err)
		}
	}
}

// A password that changes in its file while the process lives is that of the next connection. A file that is being written, or
// that names another database or login, changes nothing.
func TestPasswordThatChangesInItsFile(t *testing.T) {
	old := secretFresh
	secretFresh = 0
	defer func() { secretFresh = old }()
	file, direct := filepath.Join(t.TempDir(), "url"), filepath.Join(t.TempDir(), "direct")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "postgres://ann:geheim@h/d\n")
	write(direct, "postgres://ann:direkt@i/d\n")
	hosts := func(context.Context) (string, string, error) {
		text, err := os.ReadFile(file)
		return string(text), "config.yaml: url_file", err
	}
	ofFile, err := Find(t.Context(), "", false, lookup(map[string]string{FileVariable: file, DirectVariable + "_FILE": direct}), nil)
	if err != nil {
		t.Fatal(err)
	}
	ofHost, err := Find(t.Context(), "", false, lookup(nil), hosts)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                              "geheim",
		"postgres://ann:geheim2@h2/d\n": "geheim",
		"postgres://bob:geheim2@h/d\n":  "geheim",
		"postgres://ann:gehe":           "geheim",
		"postgres://ann@h/d":            "geheim",
		"postgres://ann:gehei%402@h/d":  "gehei@2",
	} {
		write(file, text)
		for _, d := range []*Database{&ofFile, &ofHost} {
			if user, password, err := d.Login(t.Context()); user != "ann" || password != want || err != nil {
				t.Errorf("%q: %q, %q, %v; want %q", text, user, password, err, want)
			}
			if got := d.Scrub("refused " + want); strings.Contains(got, "gehei") {
				t.Error(got)
			}
		}
		write(file, "postgres://ann:geheim@h/d\n")
		_, _, _ = ofFile.Login(t.Context())
		_, _, _ = ofHost.Login(t.Context())
	}
	write(direct, "postgres://ann:direkt2@i/d\n")
	if _, password, err := ofFile.Direct.Login(t.Context()); password != "direkt2" || err != nil {
		t.Errorf("the direct way: %q, %v", password, err)
	}
	fixed, err := Find(t.Context(), "", false, lookup(map[string]string{URLVariable: "postgres://ann:geheim@h/d"}), nil)
	if err != nil || fixed.Login != nil {
		t.Errorf("a variable does not change: %v", err)
	}
}

// User and password may stand among the options of a URL, as the driver of PostgreSQL takes them.
func TestPasswordThatChangesAmongTheOptions(t *testing.T) {
	old := secretFresh
	secretFresh = 0
	defer func() { secretFresh = old }()
	url := "postgres:///jobs?host=/run/pg&user=ann&password=geheim&sslmode=disable"
	d, err := Find(t.Context(), "", false, lookup(nil), func(context.Context) (string, string, error) { return url, "config.yaml: url_file", nil })
	if err != nil || d.Login == nil {
		t.Fatalf("%v, the password is not followed", err)
	}
	for _, c := range []struct{ text, want string }{
		{"postgres:///jobs?host=/run/pg&user=ann&password=geheim2&sslmode=disable", "geheim2"},
		{"postgres:///jobs?host=/run/pg&user=bob&password=geheim3&sslmode=disable", "geheim2"},
		{"postgres:///jobs?host=/run/other&user=ann&password=geheim3&sslmode=disable", "geheim2"},
		{"postgres:///jobs?host=/run/pg&user=ann&sslmode=disable", "geheim2"},
		{"postgres://ann:gehei%403@/jobs?host=/run/pg&sslmode=disable", "gehei@3"},
	} {
		url = c.text
		if user, password, err := d.Login(t.Context()); user != "ann" || password != c.want || err != nil {
			t.Errorf("%q: %q, %q, %v; want %q", c.text, user, password, err, c.want)
		}
		if got := d.Scrub("refused " + c.want); strings.Contains(got, "gehei") {
			t.Error(got)
		}
	}
}

// serveSecret is the extension, with one secret.
func serveSecret(t *testing.T, secret *string) map[string]string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"SecretString": secret}) // the client notices that the rest is missing
	}))
	t.Cleanup(s.Close)
	return extension(s)
}

// extension is an environment with a secret, and with a server that gives it.
func extension(s *httptest.Server) map[string]string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	return map[string]string{SecretVariable: "arn:jobs", "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port}
}

// TestSecret: the secret and the variable with a URL name the database; what the settings of the host name beside them does not
// count.
func TestSecret(t *testing.T) {
	const whole = `{"engine":"postgres","host":"h","port":5433,"username":"ann","password":"geheim","dbname":"d"}`
	for _, c := range []struct {
		name, secret, beside string
		url, user, password  string
		err                  string
	}{
		{name: "whole", secret: whole, url: "postgres://ann@h:5433/d", user: "ann", password: "geheim"},
		{name: "port as text", secret: strings.Replace(whole, "5433", `"5433"`, 1), url: "postgres://ann@h:5433/d", user: "ann", password: "geheim"},
		{name: "login among options", secret: "postgres:///d?host=h&user=ann&password=geheim", url: "postgres:///d?host=h&user=ann&password=geheim", user: "ann", password: "geheim"},
		{name: "beside a URL", secret: `{"username":"ann","password":"geheim"}`, beside: "mysql://h/d", url: "mysql://h/d", user: "ann", password: "geheim"},
		{name: "a URL", secret: "postgres://ann:geh%40eim@h/d\n", url: "postgres://ann:geh%40eim@h/d", user: "ann", password: "geh@eim"},
		{name: "no host", secret: `{"username":"ann","password":"geheim"}`, err: URLVariable},
		{name: "no password", secret: `{"username":"ann"}`, err: "no password"},
		{name: "broken", secret: `{"username":"geheim`, err: "not valid JSON"},
		{name: "empty", secret: "", err: "holds no text"},
		{name: "blanks", secret: " \n", err: "arn:jobs is empty"},
		{name: "blanks beside a URL", secret: " \n", beside: "mysql://h/d", err: "arn:jobs is empty"},
		{name: "another engine", secret: strings.Replace(whole, "postgres", "oracle", 1), err: "engine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := serveSecret(t, &c.secret)
			if c.beside != "" {
				env[URLVariable] = c.beside
			}
			d, err := Find(t.Context(), "", false, lookup(env), hostSays("postgres://u:anderes@host-a/app"))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "geheim") {
					t.Fatalf("%v, want %q", err, c.err)
				}
				return
			}
			if err != nil || d.URL != c.url {
				t.Fatalf("%q, %v", d.URL, err)
			}
			user, password, err := d.Login(t.Context())
			if err != nil || user != c.user || password != c.password {
				t.Errorf("%q, %q, %v", user, password, err)
			}
			if got := d.Scrub("refused " + c.password); strings.Contains(got, "eim") {
				t.Error(got)
			}
		})
	}
}

// Who waits for a secret while another connection asks an extension that does not answer waits no longer than its own time.
func TestSecretThatDoesNotAnswer(t *testing.T) {
	fresh := secretFresh
	secretFresh = 0
	defer func() { secretFresh = fresh }()
	asked, over := make(chan bool, 1), make(chan bool)
	var silent atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if silent.Load() {
			asked <- true
			<-over
		}
		_, _ = io.WriteString(w, `{"SecretString": "postgres://ann:geheim@h/d"}`)
	}))
	t.Cleanup(s.Close)
	d, err := Find(t.Context(), "", false, lookup(extension(s)), nil)
	if err != nil {
		t.Fatal(err)
	}
	silent.Store(true)
	first := make(chan error)
	go func() {
		_, _, err := d.Login(t.Context())
		first <- err
	}()
	<-asked
	why := errors.New("the time of the step is over")
	brief, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
	defer cancel()
	began := time.Now()
	if _, _, err := d.Login(brief); !errors.Is(err, why) || time.Since(began) > 1500*time.Millisecond {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	close(over)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestRDSAuthentication(t *testing.T) {
	const host = "db.abc.eu-central-1.rds.amazonaws.com"
	for _, c := range []struct{ auth, url, err, token string }{
		{"rds-iam", "postgres://ann@" + host + "/d?sslmode=verify-full&sslrootcert=x.pem", "", host + ":5432/?Action=connect&DBUser=ann&"},
		{"rds-iam", "mysql://ann@" + host + "/d?ssl-ca=x.pem", "", host + ":3306/?"},
		{"rds-iam", "postgres://ann@" + host + ":6000/d?sslmode=verify-ca", "", host + ":6000/?"},
		{"rds-iam", "postgres://ann@" + host + "/d", "encrypted and verified", ""},
		{"rds-iam", "postgres://ann@" + host + "/d?sslmode=prefer", "encrypted and verified", ""},
		{"rds-iam", "mysql://ann@" + host + "/d?tls=skip-verify", "encrypted and verified", ""},
		{"rds-iam", "postgres://ann:geheim@" + host + "/d?sslmode=verify-full", "take it out", ""},
		{"rds-iam", "postgres://" + host + "/d?sslmode=verify-full", "with user", ""},
		{"rds-iam", "sqlite:x.db", "with user", ""},
		{"kerberos", "postgres://ann@h/d", "want rds-iam", ""},
		{"", "postgres://ann@h/d", "set but empty", ""},
	} {
		d, err := Find(t.Context(), "", false, lookup(map[string]string{URLVariable: c.url, AuthVariable: c.auth,
			"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "geheim"}), nil)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("%s: %v, want %q", c.url, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		user, token, err := d.Login(t.Context())
		if err != nil || user != "ann" || !strings.HasPrefix(token, c.token) || !strings.Contains(token, "eu-central-1") {
			t.Errorf("%s: %q, %q, %v", c.url, user, token, err)
		}
		if got := d.Scrub("no entry for " + token); got != "no entry for [hidden]" {
			t.Error(got)
		}
	}
}

// TestSecretsThatRDSWrites: each kind of server has its own form of a URL. That of SQL Server, which only a target can have, names
// the database as a parameter, because what stands in its path is the name of an instance.
func TestSecretsThatRDSWrites(t *testing.T) {
	for engine, want := range map[string]string{
		"postgres": "postgres://u:p%40%2F@h:1234/a%20b", "aurora-mysql": "mysql://u:p%40%2F@h:1234/a%20b", "mariadb": "mysql://u:p%40%2F@h:1234/a%20b",
		"sqlserver": "sqlserver://u:p%40%2F@h:1234?database=a+b",
	} {
		got, err := SecretURL("arn:x", `{"engine": "`+engine+`", "host": "h", "port": 1234, "username": "u", "password": "p@/", "dbname": "a b"}`)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", engine, got, err, want)
		}
	}
	if _, err := SecretURL("arn:x", `{"engine": "oracle", "host": "h", "username": "u", "password": "geheim", "dbname": "d"}`); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Error(err)
	}
}
