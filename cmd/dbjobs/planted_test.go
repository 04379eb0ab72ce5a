package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// planted makes passwords, each of them unique, and looks for all of them.
type planted struct {
	*testing.T
	list []string
}

// password makes a new password. Its end, which parsers of URLs cut off, can be found alone, too.
func (p *planted) password(reserved string) string {
	one := fmt.Sprintf("Gehe1m%dA%sGehe1m%dB", len(p.list), reserved, len(p.list))
	p.list = append(p.list, one)
	return one
}

func (p *planted) url(reserved string) string {
	return "postgres://ann:" + p.password(reserved) + "@127.0.0.1:1/d"
}

// absent fails for each password that is in a text, also if only a part of it is there.
func (p *planted) absent(what, text string) {
	p.Helper()
	if i := strings.Index(strings.ToLower(text), "gehe1m"); i >= 0 {
		p.Errorf("%s: found %q in %q", what, text[i:min(len(text), i+10)], text)
	}
}

// said searches the whole output of a command line, in each of the forms of standard error.
func (p *planted) said(vars map[string]string, args ...string) {
	p.Helper()
	home := p.TempDir()
	for _, format := range []string{logs.Text, logs.JSON, logs.GCP} {
		var stdout, stderr bytes.Buffer
		env := func(name string) (string, bool) {
			if v, ok := vars[name]; ok {
				return v, true
			}
			own := map[string]string{"DBJOBS_LOG_FORMAT": format, "HOME": home}
			v, ok := own[name]
			return v, ok
		}
		var environ []string
		for name, value := range vars {
			environ = append(environ, name+"="+value)
		}
		run(p.Context(), args, strings.NewReader(""), &stdout, &stderr, env, environ)
		p.absent(fmt.Sprintf("%q with %v", args, vars), stdout.String()+stderr.String())
		if stderr.Len() == 0 {
			p.Errorf("%q with %v said nothing", args, vars)
		}
	}
}

// reserved are characters that a password may have, and that should have been escaped.
var reserved = []string{"", "@x/y?z=", "@", "/", "?", "#", "%", ":", "&", " ", `"`, "%40"}

// tried returns those of the reserved characters that are tried.
func tried() []string {
	switch {
	case testing.Short():
		return reserved[1:2]
	case !prove.Whole():
		return reserved[:2]
	}
	return reserved
}

// TestAPlantedPassword: a password can be in many places, correctly or by mistake. No output has it.
func TestAPlantedPassword(t *testing.T) {
	t.Parallel()
	p := &planted{T: t}
	for _, r := range tried() {
		p.said(nil, "--database", p.url(r), "job", "list")
		p.said(map[string]string{settings.URLVariable: p.url(r)}, "tick")
		p.said(nil, "--database", strings.Replace(p.url(r), "postgres", "mysql", 1), "job", "list")
		p.said(nil, "--database", "postgres://127.0.0.1:1/d?user=ann&password="+p.password(r), "job", "list")
		p.said(nil, "--database", "host=127.0.0.1 password="+p.password(r), "job", "list")
		// Together with a mistake.
		p.said(nil, "--database", p.url(r), "job", "nosuch")
		p.said(nil, "--database", p.url(r), "job", "--nosuch")
		p.said(nil, "--databse", p.url(r), "job", "list")
		p.said(nil, "--database="+p.url(r), "job", "list", "--database", p.url(r))
		p.said(nil, "--database", p.url(r), "run", "list", "--limit", "many")
		// In the wrong place.
		for _, args := range [][]string{{"URL"}, {"job", "URL"}, {"job", "list", "URL"}, {"job", "show", "URL"}, {"job", "create", "URL", "--sql", "SELECT 1"},
			{"tick", "--name", "URL"}, {"tick", "--metrics", "URL"}, {"tick", "--limit", "URL"}, {"tick", "--budget", "URL"}, {"work", "--queue", "URL"},
			{"apply", "-f", "URL"}, {"job", "create", "a", "--owner", "URL"}, {"job", "create", "a", "--timeout", "URL", "--sql", "SELECT 1"},
			{"job", "pause", "a", "--reason", "URL"}, {"rule", "next", "URL"}, {"help", "URL"}, {"tick", "--log-format", "URL"}, {"migrate", "--instance", "URL"}} {
			for i := range args {
				if args[i] == "URL" {
					args[i] = p.url(r)
				}
			}
			p.said(map[string]string{settings.URLVariable: "sqlite:absent.db"}, args...)
		}
		for _, name := range variables() {
			p.said(map[string]string{settings.URLVariable: "sqlite:absent.db", name: p.url(r)}, "tick")
			p.said(map[string]string{name: p.url(r)}, "work")
		}
		p.said(map[string]string{"DBJOBS_DATABSE_URL": p.url(r)}, "job", "list")
	}
	p.secrets()
	p.events()
}

// secrets tries passwords that come from a file or from Secrets Manager, also folded and malformed.
func (p *planted) secrets() {
	dir := p.TempDir()
	for i, r := range tried() {
		path := filepath.Join(dir, fmt.Sprint(i))
		for _, text := range []string{p.url(r) + "\n", "postgres://ann:\n  " + p.password(r) + "\n@127.0.0.1:1/d", p.password(r), `{"password": "` + p.password(r) + `"}`} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				p.Fatal(err)
			}
			p.said(map[string]string{settings.FileVariable: path}, "tick")
		}
		for _, form := range []string{"database: %s", "database: {url_file: %s}", "targets: {crm: %s}", "secrets: %s", "secrets: [%s]", "secrets: {A: [%s]}", "mail: {password: %s}", "heartbeat: [%s]", "%[1]s: %[1]s"} {
			p.said(map[string]string{host.Variable: fmt.Sprintf(form, strconv.Quote(p.url(r)))}, "tick")
		}
		for _, secret := range []string{p.url(r), p.password(r), `{"username": "ann", "password": "` + p.password(r) + `"}`,
			`{"engine": "postgres", "host": "127.0.0.1", "port": 1, "username": "ann", "dbname": "d", "password": "` + p.password("") + `"}`} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": secret}) // the client notices that the rest is missing
			}))
			_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
			p.said(map[string]string{settings.SecretVariable: "arn:jobs", "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port}, "tick")
			s.Close()
		}
	}
}

// TestAPlantedPasswordInARefusal: a server refuses a login, and quotes the password. No output has it.
func TestAPlantedPasswordInARefusal(t *testing.T) {
	p := &planted{T: t}
	for _, r := range tried() {
		password := p.password(r)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			p.Fatal(err)
		}
		go refuse(l, "password "+password+" is wrong, and so is "+strings.ToUpper(url.QueryEscape(password)))
		p.said(nil, "--database", "postgres://"+url.UserPassword("ann", password).String()+"@"+l.Addr().String()+"/d?sslmode=disable", "tick")
		p.Setenv("PGPASSWORD", password)
		p.said(nil, "--database", "postgres://ann@"+l.Addr().String()+"/d?sslmode=disable", "tick")
		p.Setenv("PGPASSWORD", "")
		l.Close()
	}
}

// refuse is a PostgreSQL server that refuses every login.
func refuse(l net.Listener, message string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 1000)) // any message
		fields := "SFATAL\x00VFATAL\x00C28P01\x00M" + message + "\x00\x00"
		_, _ = c.Write(append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(len(fields)+4)), fields...))
		c.Close()
	}
}

// events tries the events of a Lambda function, and its answers.
func (p *planted) events() {
	for _, r := range tried() {
		for _, e := range []string{`{"command": %s}`, `{"queue": %s, "command": "work"}`, `{%s: 1}`, `{"limit": %s}`, `%s`} {
			text, err := json.Marshal(p.url(r))
			if err != nil {
				p.Fatal(err)
			}
			var log bytes.Buffer
			f := &function{service: service{stderr: &log, warm: &warm{}, env: func(name string) (string, bool) {
				return map[string]string{settings.URLVariable: "sqlite:absent.db"}[name], name == settings.URLVariable
			}}}
			ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
			answer, err := f.Invoke(ctx, fmt.Appendf(nil, e, text))
			cancel()
			if err == nil {
				p.Errorf("%s %s: no error", e, text)
				continue
			}
			p.absent(e, string(answer)+err.Error()+fmt.Sprintf("%+v", err)+log.String())
		}
	}
}

// TestAPlantedPasswordIsNotRecorded: if an engine's error quotes our password, or a URL, neither is in a record.
func TestAPlantedPasswordIsNotRecorded(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			p := &planted{T: t}
			raw := storetest.URL(t, e)
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			own, _ := u.User.Password()
			name := func(s string) string { // no column has this name, and the engine's error will say so
				if e != "postgres" {
					return "SELECT `" + s + "`"
				}
				return `SELECT "` + s + `" FROM (SELECT 1) x`
			}
			statements := map[string]string{"url": name("postgres://u:" + p.password("")[:12] + "@h/d"), "pair": name("password=" + p.password("")[:12])}
			if own != "" {
				statements["own"] = name(own)
			}
			vars := map[string]string{settings.URLVariable: raw}
			do := func(args ...string) string {
				t.Helper()
				var out, talk bytes.Buffer
				env := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
				if code := run(t.Context(), args, strings.NewReader(""), &out, &talk, env, nil); code != exitDone {
					t.Fatalf("%q: %d: %s", args, code, &talk)
				}
				return out.String() + talk.String()
			}
			check := func(what, text string) {
				t.Helper()
				p.absent(what, text)
				if own != "" && strings.Contains(text, own) {
					t.Errorf("%s: found our password in %s", what, text)
				}
			}
			do("migrate")
			for job, sql := range statements {
				do("job", "create", job, "--on-startup", "--sql", sql)
			}
			check("text", do("tick", "--startup-id", "1"))
			check("JSON", do("tick", "--startup-id", "2", "--json"))
			for _, format := range []string{logs.JSON, logs.GCP} {
				check(format, do("tick", "--startup-id", format, "--log-format", format, "--verbose"))
			}
			check("job list", do("job", "list"))
			check("run list", do("run", "list")+do("run", "list", "--json"))
			check("report", do("report", "-o", "-"))
			check("feed", do("export", "--ical"))
			var runs []store.Run
			if err := json.Unmarshal([]byte(do("run", "list", "--json")), &runs); err != nil || len(runs) != 4*len(statements) {
				t.Fatalf("%d runs, %v", len(runs), err)
			}
			for _, r := range runs {
				check("run show", do("run", "show", r.ID)+do("run", "show", r.ID, "--json"))
				if !strings.Contains(r.Error, "[hidden]") {
					t.Errorf("%s: %s", r.Job, r.Error)
				}
			}
			for table, rows := range records(t, raw) {
				check(table, rows)
			}
		})
	}
}

// records returns the rows of all tables, except the tables of definitions, which hold the SQL of jobs as it was
// written.
func records(t *testing.T, raw string) map[string]string {
	t.Helper()
	s, err := store.Open(t.Context(), raw, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := s.JobDB(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxIdleConns(1)
	prefix := "dbjobs_"
	if s.Engine().Name == "postgres" {
		prefix = "dbjobs."
	}
	var tables []string
	for _, table := range []string{"runs", "attempts", "plans", "ticks", "gaps", "pauses"} {
		tables = append(tables, prefix+table)
	}
	return rowsOf(t, db, tables)
}

// rowsOf returns the rows of tables as text, with each column.
func rowsOf(t *testing.T, db *sql.DB, tables []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, table := range tables {
		rows, err := db.Query("SELECT * FROM " + table)
		if err != nil {
			t.Fatal(err)
		}
		err = eachRow(t, rows, func(row []cell) {
			for _, c := range row {
				all[table] += fmt.Sprintf("%s=%v ", c.column, c.value)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
