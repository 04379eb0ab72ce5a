package host

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store/secret"
)

func lookup(env map[string]string) Lookup {
	return func(name string) (string, bool) {
		v, found := env[name]
		return v, found
	}
}

// file writes a file of that mode.
func file(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

const sample = `database: {url_file: /run/secrets/url}
owners: {ann.smith: {url_env: OLD}, ann@corp: {url_env: OLD}, 7of9: {url_env: OLD}}
targets:
  crm: mysql://ann@db/crm
  old: {url_env: OLD, owners: [bob]}
programs: [/usr/bin/pg_dump, {path: /opt/jobs/, owners: [ann, bob]}]
addresses: [10.0.0.0/8, "::1", {range: 192.168.1.7, owners: ann}, "::ffff:172.16.0.0/108"]
clouds: [gcp, {cloud: aws, owners: [ann]}]
secrets:
  HOOK: {value_env: HOOK_KEY}
mail: {server: mx.example.org, from: jobs@example.org, user: jobs, password_file: /run/secrets/mail}
heartbeat: https://hc.example.org/ping/1
on: {failed: tell, late: tell}
`

func TestLeaves(t *testing.T) {
	s, err := Load(lookup(map[string]string{Variable: sample, "HOOK_KEY": "geheimnis", "OLD": "sqlite:old.db"}), nil)
	if err != nil || s.From != Variable {
		t.Fatal(s.From, err)
	}
	known := &secret.Known{}
	h := s.Leaves(known)
	if v, err := h.Secret(t.Context(), "ann", "HOOK"); v != "geheimnis" || err != nil || known.Hide(v) != secret.Hidden {
		t.Errorf("the secret is %q, %v", v, err)
	}
	if v, err := h.Target(t.Context(), "bob", "old"); v != "sqlite:old.db" || err != nil {
		t.Errorf("the target is %q, %v", v, err)
	}
	for _, owner := range []string{"ann.smith", "ann@corp", "7of9"} { // an owner is a login, whatever its letters
		if h.Logins[owner] == nil {
			t.Errorf("no login of %s", owner)
		}
	}
	if _, err := h.Target(t.Context(), "ann", "old"); err == nil {
		t.Error("a target is open to those whom it is not for")
	}
	for _, c := range []struct {
		owner, address string
		want           bool
	}{{"x", "10.1.2.3", true}, {"x", "::1", true}, {"ann", "192.168.1.7", true}, {"ann", "192.168.1.8", false}, {"x", "192.168.1.7", false}, {"x", "127.0.0.1", false}, {"x", "172.31.0.1", true}} {
		if got := h.AllowsAddress(c.owner, netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s for %s: %t", c.address, c.owner, got)
		}
	}
	for _, c := range []struct {
		owner, cloud string
		want         bool
	}{{"x", "gcp", true}, {"ann", "aws", true}, {"x", "aws", false}} {
		if err := h.AllowsCloud(c.owner, c.cloud); (err == nil) != c.want {
			t.Errorf("%s for %s: %v", c.cloud, c.owner, err)
		}
	}
	if m, err := h.Mail("ann"); err != nil || m.Port != 587 || m.TLS != "starttls" || m.User != "jobs" {
		t.Errorf("mail is %+v, %v", m, err)
	}
	if h.Programs[1].Path != "/opt/jobs" || s.On.Late != "tell" || s.Heartbeat.Text == "" {
		t.Errorf("read as %+v", s.Host)
	}
}

// A variable replaces a value of the file. The owners to whom the file offers the secret stay the same. A value may be
// in a secret of AWS: as it is or, if it is the URL of a database, in the members that RDS writes.
func TestSecretsOfAWS(t *testing.T) {
	held := map[string]string{
		"arn:ann": `{"engine":"postgres","host":"db","port":5433,"username":"ann","password":"geh@im","dbname":"jobs"}`,
		"arn:bob": "postgres://bob:geheim@db/jobs\n",
		"arn:rds": `{"username":"ann","password":"geheim"}`,
		"arn:key": "{geheim}",
	}
	extension := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, found := held[r.URL.Query().Get("secretId")]
		if !found {
			http.Error(w, "ResourceNotFoundException", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": text}) // the client notices that the rest is missing
	}))
	defer extension.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(extension.URL, "http://"))
	s, err := Load(lookup(map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port, Variable: `
owners: {ann: {url_aws_secret: arn:ann}, bob: {url_aws_secret: arn:bob}, carl: {url_aws_secret: arn:rds}, dan: {url_aws_secret: arn:gone}}
targets: {shop: {url_aws_secret: arn:ann}}
secrets: {KEY: {value_aws_secret: arn:key}}
`}), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := s.Leaves(&secret.Known{})
	for name, want := range map[string]string{
		"ann": "postgres://ann:geh%40im@db:5433/jobs", "bob": "postgres://bob:geheim@db/jobs",
		"carl": "does not name engine, host and dbname", "dan": "ResourceNotFoundException",
	} {
		got, err := h.Logins[name](t.Context())
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || err != nil && strings.Contains(got, "geheim") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if v, err := h.Target(t.Context(), "x", "shop"); err != nil || v != "postgres://ann:geh%40im@db:5433/jobs" {
		t.Errorf("the target is %q, %v", v, err)
	}
	if v, err := h.Secret(t.Context(), "x", "KEY"); err != nil || v != "{geheim}" {
		t.Errorf("the secret is %q, %v", v, err)
	}
}

func TestSecretVariables(t *testing.T) {
	env := map[string]string{Variable: "secrets: {HOOK: {value: of the file, owners: [ann]}}", SecretPrefix + "HOOK": "of the variable", SecretPrefix + "b": "other"}
	s, err := Load(lookup(env), []string{"HOME=/h", SecretPrefix + "HOOK=of the variable", SecretPrefix + "b=other", SecretPrefix + "=x"})
	if err != nil {
		t.Fatal(err)
	}
	h := s.Leaves(nil)
	if v, err := h.Secret(t.Context(), "ann", "HOOK"); v != "of the variable" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
	if _, err := h.Secret(t.Context(), "bob", "HOOK"); err == nil {
		t.Error("the variable is for all, while the file names owners")
	}
	if v, err := h.Secret(t.Context(), "bob", "b"); v != "other" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
}

func TestModes(t *testing.T) {
	const inside, outside = "secrets: {HOOK: {value: geheimnis}}", "secrets: {HOOK: {value_file: /run/secrets/hook}}"
	dir := t.TempDir()
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
	}{
		{inside, 0o600, ""}, {inside, 0o640, ""}, {outside, 0o644, ""}, {outside, 0o444, ""},
		{inside, 0o644, ":1:17: secrets.HOOK: holds a secret in a file that all users may read; chmod o-r "},
		{"mail: {server: a, from: b@x.org, user: c, password: geheimnis}", 0o644, "holds a secret"},
		{"database: postgres://ann:geheimnis@h/d", 0o644, "holds a secret"},
		{"targets: {a: postgres://ann:geheimnis@h/d}", 0o644, "holds a secret"},
		{"targets: {a: postgres://ann@h/d}", 0o644, ""},
		{"heartbeat: {success: 'https://h/a?token=geheimnis'}", 0o644, "holds a secret"},
		{"heartbeat: 'https://h/a?token=${secret:TOKEN}'", 0o644, ""},
		{outside, 0o666, "may be written by all users"}, {outside, 0o660, "may be written by its group"},
	} {
		path := file(t, filepath.Join(dir, "config.yaml"), c.text, c.mode)
		_, err := Load(lookup(map[string]string{Variable: path}), nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "geheimnis")) {
			t.Errorf("%s with mode %o: %v, want %q", c.text, c.mode, err, c.want)
		}
	}
}

// Each mistake is reported with its place, and without a value that could be a secret. A file of ours whose path other
// users can change is refused: they could allow themselves anything.
func TestFolders(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, filepath.Join(dir, "etc/dbjobs/config.yaml"), "# none\n", 0o600)
	load := func(path string) error {
		_, err := Load(lookup(map[string]string{Variable: path}), nil)
		return err
	}
	for folder, modes := range map[string]map[os.FileMode]string{
		filepath.Dir(path):        {0o777: "the folder " + filepath.Dir(path) + " may be written by all users", 0o770: "by its group", 0o755: "", os.ModeSticky | 0o777: ""},
		filepath.Join(dir, "etc"): {0o777: "the folder " + dir + "/etc may be written by all users", 0o755: ""},
	} {
		for mode, want := range modes {
			if err := os.Chmod(folder, mode); err != nil {
				t.Fatal(err)
			}
			if err := load(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s with mode %v: %v, want %q", folder, mode, err, want)
			}
		}
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "theirs"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "theirs/config.yaml")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := load(link); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(filepath.Dir(link), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := load(link); err == nil {
		t.Error("a link that others can turn is followed")
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"program: [/bin/sh]", "DBJOBS_CONFIG:1:1: program: unknown key; did you mean programs?"},
		{"a: 1\nb: 2", "DBJOBS_CONFIG:2:1: b: unknown key"},
		{"programs: [{path: /bin/sh, owner: ann}]", ":1:28: programs[0].owner: unknown key; did you mean owners?"},
		{"programs: [sh]", `programs[0]: found "sh", want the absolute path`},
		{"programs: [/opt/../bin]", `without "." and ".."`},
		{"addresses: [localhost]", "names are not allowed"},
		{"clouds: [was]", "did you mean aws? (one of aws, gcp)"},
		{"addresses: [10.1.0.0/8]", "the range is 10.0.0.0/8"},
		{"addresses: ['::ffff:10.1.0.0/104']", "the range is 10.0.0.0/8"},
		{"addresses: ['::ffff:0.0.0.0/90']", "the range is ::"},
		{`secrets: {HOOK: ""}`, "needs value_file, value_env, value_aws_secret or value"},
		{`database: ""`, "needs url_file, url_env, url_aws_secret or url"},
		{"secrets: {HOOK: {}}", "needs value_file, value_env, value_aws_secret or value"},
		{"secrets: {HOOK: {value: geheim, value_env: HOOK}}", "more than one of"},
		{"secrets: {HOOK: {valu: geheim}}", "did you mean value?"},
		{"secrets: {HOOK: {value_file: hook}}", "want the absolute path of a file"},
		{"secrets: {'a b': {value: geheim}}", "a name has letters"},
		{"targets: {a.b: 'sqlite:a'}", "a name has letters"},
		{"owners: {a/b: 'sqlite:a'}", `"a/b" holds a slash`},
		{"secrets: [geheim]", "secrets: want a mapping of names"},
		{"secrets: geheim\n", "secrets: want a mapping of names"},
		{"secrets: {HOOK: 12345678}", "secrets.HOOK: want a text"},
		{"secrets:\n  HOOK: @geheim\n", "not YAML; look at"},
		{"mail: {server: mx}", "needs server and from"},
		{"mail: smtp://mx", "mail: want a mapping with keys such as server"},
		{"mail: {server: 'mx:25', from: a@x.org}", `mail.server: found "mx:25", want a name or an address alone; port`},
		{"mail: {server: '::1', from: jobs}", `mail.from: found "jobs", want an address such as`},
		{"mail: {host: mx}", "mail.host: unknown key; write server"},
		{"mail: {server: mx, from: a, user: ann}", "needs password_file"},
		{"mail: {server: mx, from: a@x.org, password_env: MAIL}", "has a password and no user"},
		{"mail: {server: mx, from: a, tls: strattls}", "did you mean starttls?"},
		{"on: {late: a/b/c}", `on.late: "b/c" holds a slash`},
		{"on: {failed: [tell]}", "on.failed: found"},
		{"on: {faild: tell}", "on.faild: unknown key; did you mean failed?"},
		{"database: {url: a, uri: b}", "did you mean url?"},
		{"heartbeat: {url: 'https://h/geheim', stat: 'https://h'}", ":1:38: heartbeat.stat: unknown key; did you mean start?"},
		{"heartbeat: {url: 'https://h/geheim', failure: 'https://h'}", ":1:18: heartbeat.url: excludes start, success and failure"},
		{"heartbeat: {url: 'https://h/geheim', url_env: A}", "more than one of"},
		{"heartbeat: {url_env: A, start: 'https://h/geheim'}", "excludes start, success and failure"},
		{"heartbeat: {}", "needs url_file, url_env, url_aws_secret or url"},
		{"heartbeat: ftp://h/geheim", "heartbeat.url: want https or http"},
		{"heartbeat: https://ann:geheim@h/", "a user and password are not sent by a heartbeat"},
		{"heartbeat: 'https://h/geheim/${nam}'", "${nam} is not known; there are ${id}, ${name}, ${message} and ${secret:NAME}"},
		{"heartbeat: {success: 'https://h/geheim?${id'}", "heartbeat.success: found ${ without }"},
		{"a: &a [1]\n---\nb: 1", "a second document"},
	} {
		_, err := Load(lookup(map[string]string{Variable: c.text}), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n%v\nwant %s", c.text, err, c.want)
		} else if strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "12345678") {
			t.Errorf("%s\ntells a secret: %v", c.text, err)
		}
	}
}

func TestOnlyOurs(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, filepath.Join(dir, "jobs", "jobs.db"), "", 0o600)
	if !OnlyOurs(path) {
		t.Fatal("a file of our own in a folder of our own is not ours")
	}
	for name, mode := range map[string]os.FileMode{path: 0o606, filepath.Dir(path): 0o770, dir: 0o777, path + "-wal": 0o622} {
		if name == path+"-wal" {
			file(t, name, "", 0o600)
		}
		before, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if OnlyOurs(path) {
			t.Errorf("with mode %o of %s, the file is only ours", mode, name)
		}
		if err := os.Chmod(name, before.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if !OnlyOurs(path) {
		t.Error("a file that others may read is not ours")
	}
	if OnlyOurs(path + "x") {
		t.Error("a file that is not there is ours")
	}
}

// A link that others can change leads to our file now, and could lead to theirs when the database is opened.
func TestOnlyOursThroughLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, filepath.Join(dir, "jobs", "jobs.db"), "", 0o600)
	link := func(folder string, mode os.FileMode, to string) string {
		folder = filepath.Join(dir, folder)
		if err := errors.Join(os.Mkdir(folder, 0o700), os.Symlink(to, filepath.Join(folder, "link")), os.Chmod(folder, mode)); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(folder, "link")
	}
	mine, relative := link("mine", 0o755, path), link("relative", 0o755, "../jobs/../jobs")
	sticky, theirs := link("sticky", os.ModeSticky|0o777, path), link("theirs", 0o777, path)
	again, around := link("again", 0o755, theirs), link("around", 0o755, "link")
	for path, want := range map[string]bool{mine: true, relative + "/jobs.db": true, sticky: true, theirs: false, again: false, around: false, relative: false} {
		if OnlyOurs(path) != want {
			t.Errorf("%s is only ours: %t, want %t", path, !want, want)
		}
	}
}
