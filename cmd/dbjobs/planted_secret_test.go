package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// grown are the secrets of a host. Most of each secret is unique: no other text has even a part of it.
var grown = map[string]string{
	"PLAIN": `vK9/tokenQ+wJ&z"2mR5`,
	"LONG":  strings.Repeat("g7Hd", 3) + base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0x5a, 0xc3, 0x91, 0x17, 0xee}, 150)),
	"SIGN":  "whsec_" + base64.StdEncoding.EncodeToString([]byte("Xp4rWq8LmT2vNz6KbY9cHd3F")),
	"PEM":   "-----BEGIN PRIVATE KEY-----\nMIIEu1qT8xWbN5kZ\nhRg6Yp2LsVm9DcJf\n-----END PRIVATE KEY-----",
	"DIGIT": "748201936552",
	"MAIL":  "Br7-postkasten-Uj4w",
	"CRM":   "Ct8-kundenwort-Vx2q", // of a target
	"HOOK":  "",                    // a URL of the test's server, with hookPart in it
	"JSON":  "Fw6memberTq9zKx1",    // the password in a secret of JSON
	"OTHER": "Lw3eigentumWr8x",     // of another owner
}

const hookPart = "hXk29QmW7LpZr4"

// TestAPlantedSecret: jobs use secrets wherever they may, with servers and programs that show them to everybody.
// Nothing that is printed, logged or recorded has a part of a secret, and neither has the list of processes. In the
// bounded form, one engine has all jobs. The other engines have the SQL jobs, because their drivers and records differ,
// and one job of each other kind. In the short form, every engine has only these.
func TestAPlantedSecret(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			g := newGardener(t)
			o := &owner{gardener: g, engine: engine, raw: storetest.URL(t, engine), home: t.TempDir()}
			o.whole = engine == storetest.Engines(t)[0] && !testing.Short() || prove.Whole()
			o.settings()
			o.do("migrate")
			o.do("apply", "-f", o.manifest())
			formats := []string{logs.Text, logs.JSON, logs.GCP}
			if !prove.Whole() {
				formats = formats[:1]
			}
			for _, format := range formats {
				o.tick("--verbose", "--log-format", format, "--startup-id", format, "--concurrency", "8", "--metrics", "emf")
			}
			o.tick("--json", "--startup-id", "last", "--concurrency", "8", "--metrics", filepath.Join(o.home, "dbjobs.prom"))
			o.shown()
			o.recorded()
		})
	}
}

// owner runs commands on a host with secrets.
type owner struct {
	*gardener
	engine, raw, home string
	whole             bool // with all jobs
	env               []string
	echo              string // URL of a server that shows everything that it gets
	jobs              []string
	beats             atomic.Int32 // that came
	kept              *warm        // set when everything is done, and is only shown
}

// settings makes the settings of the host, with secrets from each place where a secret can be.
func (o *owner) settings() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/beat/") { // the content of the request is for others: only the address is secret
			body, err := io.ReadAll(r.Body)
			o.free(fmt.Sprintf("heartbeat, %v", err), string(body))
			o.beats.Add(1)
		}
		echo(w, r)
	}))
	o.Cleanup(s.Close)
	o.echo = s.URL
	mailPort, roots := blabber(o.T, o.home)
	o.env = []string{"HOME=" + o.home, "GORACE=" + os.Getenv("GORACE"), "SSL_CERT_FILE=" + roots, settings.URLVariable + "=" + o.raw}
	var text strings.Builder
	fmt.Fprintf(&text, "heartbeat: %q\ntargets: {crm: {url_env: CRM_URL}}\n", s.URL+"/beat/${secret:PLAIN}?mode=404")
	o.env = append(o.env, "CRM_URL=postgres://jobs:"+grown["CRM"]+"@127.0.0.1:1/crm?sslmode=disable")
	fmt.Fprintf(&text, "programs: [/bin, /usr/bin]\naddresses: [127.0.0.0/8]\nmail: {server: 127.0.0.1, port: %s, tls: tls, user: jobs, password_env: MAIL_PASSWORD, from: jobs@example.org}\nsecrets:\n", mailPort)
	for i, name := range []string{"PLAIN", "LONG", "SIGN", "PEM", "DIGIT", "HOOK", "OTHER", "JSON"} {
		value := grown[name]
		switch name {
		case "HOOK":
			value = s.URL + "/services/T1/" + hookPart + "?mode=404"
		case "JSON":
			value = `{"username": "jobs", "password": "` + value + `"}`
		}
		owners := ""
		if name == "OTHER" {
			owners = ", owners: [nobody-of-that-name]"
		}
		file := filepath.Join(o.home, "secret-"+name)
		switch i % 3 {
		case 0:
			o.env = append(o.env, host.SecretPrefix+name+"="+value)
			continue
		case 1:
			o.env = append(o.env, "KEPT_"+name+"="+value)
			fmt.Fprintf(&text, "  %s: {value_env: KEPT_%s%s}\n", name, name, owners)
		default:
			if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
				o.Fatal(err)
			}
			fmt.Fprintf(&text, "  %s: {value_file: %s%s}\n", name, file, owners)
		}
	}
	o.env = append(o.env, "MAIL_PASSWORD="+grown["MAIL"], host.Variable+"="+text.String())
}

// tick runs a pass in its own process, which starts all jobs. Its output is searched.
func (o *owner) tick(args ...string) {
	o.Helper()
	cmd := exec.Command(program(o.T), append([]string{"tick"}, args...)...)
	cmd.Env, cmd.Dir = o.env, o.home
	said, err := cmd.CombinedOutput()
	o.free("tick "+strings.Join(args, " "), string(said))
	if err != nil {
		o.Fatalf("tick %q: %v: %s", args, err, hideParts(o.parts, string(said)))
	}
}

// do runs another command. Its output is searched, and its standard output is returned.
func (o *owner) do(args ...string) string {
	o.Helper()
	var stdout, stderr bytes.Buffer
	env := func(name string) (string, bool) {
		for _, pair := range o.env {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
	if code := runKept(o.Context(), o.kept, args, strings.NewReader(""), &stdout, &stderr, env, o.env); code != exitDone {
		o.free(strings.Join(args, " "), stderr.String())
		o.Fatalf("%q: %d: %s", args, code, hideParts(o.parts, stderr.String()))
	}
	o.free(strings.Join(args, " "), stdout.String()+stderr.String())
	return stdout.String()
}

// everywhere names each secret once.
const everywhere = "${secret:PLAIN} ${secret:LONG} ${secret:DIGIT} ${secret:PEM}"

// manifest has a job for each way in which a secret can get out.
func (o *owner) manifest() string {
	jobs := map[string]any{}
	add := func(name string, job map[string]any) {
		if !o.whole && !strings.HasPrefix(name, "sql-") && !slices.Contains([]string{"http-500", "http-hook", "exec-env", "shell-says", "shell-member", "shell-lists", "mail"}, name) {
			return
		}
		jobs[name], job["on_startup"] = job, true
		o.jobs = append(o.jobs, name)
	}
	for _, mode := range []string{"200", "500", "429", "hang", "redirect", "html", "cut", "reason", "headers"} {
		add("http-"+mode, map[string]any{"on": map[string]string{"failed": "tell"}, "steps": []any{
			map[string]any{"name": "ask", "timeout": "1s", "on_failure": "next", "http": map[string]any{
				"url":     o.echo + "/${secret:PLAIN}/x?mode=" + mode + "&k=${secret:PLAIN}",
				"headers": map[string]string{"X-Key": "Key ${secret:PLAIN}", "X-Long": "${secret:LONG}"},
				"json":    map[string]any{"all": everywhere, "list": []string{"${secret:PLAIN}"}, "number": "${secret:DIGIT}"},
				"secret":  "${secret:SIGN}", "auth": map[string]string{"bearer": "${secret:PLAIN}"},
			}},
			map[string]any{"name": "tell", "shell": map[string]any{"run": `echo "$DBJOBS_STEPS_ASK_OUTPUT$DBJOBS_STEPS_ASK_ERROR"; exit 1`,
				"env": map[string]string{"WHICH": "${steps.ask.status}"}}},
		}})
	}
	add("http-basic", map[string]any{"http": map[string]any{"url": o.echo + "/?mode=500", "body": everywhere,
		"auth": map[string]any{"basic": map[string]string{"user": "u${secret:PLAIN}", "password": "${secret:PLAIN}"}}}})
	add("http-hook", map[string]any{"http": "${secret:HOOK}"})
	add("http-refused", map[string]any{"http": "http://169.254.169.254/${secret:PLAIN}"})
	add("http-not-given", map[string]any{"http": o.echo + "/${secret:OTHER}"})
	keys := map[string]string{"P": "${secret:PLAIN}", "L": "${secret:LONG}", "D": "${secret:DIGIT}", "K": "${secret:PEM}", "H": "${secret:HOOK}", "J": "${secret:JSON}"}
	for name, text := range map[string]string{
		"says":     `env; echo "$P" | base64; printf 'xy%s' "$P" | base64; printf %s "$P" | od -An -tx1; echo '{"k":"'"$P"'"}'; printf '%s\n' "$K" | head -3`,
		"floods":   `printf "$P%.0s" $(seq 3000); echo; printf "$L%.0s" $(seq 200)`,
		"cut":      `head -c 8100 /dev/zero | tr '\0' x; printf %s "$L"; head -c 100000 /dev/zero | tr '\0' x; printf %s "$L"; head -c 7800 /dev/zero | tr '\0' x`,
		"member":   `p=${J#*password\": \"}; echo "no ${p%\"*}"`,
		"fails":    `echo "no $P"; echo "no $L" >&2; exit 3`,
		"hangs":    `echo "still $P"; sleep 60`,
		"lists":    `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' >processes-$$; true`,
		"asked-of": `echo $DBJOBS_ARGS_LATER; cat "$HOME/absent $P"`,
	} {
		timeout := "1m"
		if name == "hangs" {
			timeout = "1s"
		}
		add("shell-"+name, map[string]any{"timeout": timeout, "on": map[string]string{"failed": "tell"}, "shell": map[string]any{"run": text, "env": keys, "grace": "1s"}})
	}
	add("exec-env", map[string]any{"exec": map[string]any{"run": []string{"env"}, "env": keys}})
	mark, number, quoted := "?", "CAST(? AS decimal(20,4))", "SELECT concat('x', ?)"
	switch o.engine {
	case "postgres":
		mark, number, quoted = "$1", "CAST($1 AS integer)", "SELECT 'x' || $1"
	case "sqlite":
		number, quoted = "json_extract('{}', ?)", "SELECT 'x' || ?"
	}
	for _, secret := range []string{"PLAIN", "LONG", "DIGIT", "PEM"} {
		add("sql-row-"+secret, map[string]any{"steps": []any{
			map[string]any{"name": "row", "sql": "SELECT " + strings.ReplaceAll(mark, "$1", "$1::text") + " AS a", "args": []string{"${secret:" + secret + "}"}},
			map[string]any{"name": "cut", "sql": quoted, "args": []string{strings.Repeat("x", 1010) + "${secret:" + secret + "}"}},
			map[string]any{"name": "then", "sql": "SELECT " + strings.ReplaceAll(mark, "$1", "$1::text"), "args": []string{"${steps.row.row.a}"}},
		}})
		add("sql-fails-"+secret, map[string]any{"sql": "SELECT " + number, "args": []string{"no ${secret:" + secret + "}"}, "on": map[string]string{"failed": "tell"}})
		add("sql-atomic-"+secret, map[string]any{"atomic": true, "sql": "SELECT " + number, "args": []string{"${secret:" + secret + "} no"}})
	}
	add("sql-target", map[string]any{"sql": "SELECT " + mark, "args": []string{"${secret:PLAIN}"}, "target": "crm"})
	add("mail", map[string]any{"mail": map[string]any{"to": "ann@example.org", "subject": "x"}})
	jobs["tell"] = map[string]any{"shell": `echo "$DBJOBS_ARGS_ERROR"; env`}
	text, err := json.Marshal(map[string]any{"defaults": map[string]any{"retry": map[string]int{"attempts": 1}}, "jobs": jobs})
	if err != nil {
		o.Fatal(err)
	}
	file := filepath.Join(o.home, "jobs.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		o.Fatal(err)
	}
	return file
}

// shown searches the output of the commands that show the work.
func (o *owner) shown() {
	o.kept = new(warm)
	defer o.kept.close()
	for _, command := range []string{"run list --limit 1000", "job list", "schedule list", "pauses", "export", "config check"} {
		args := strings.Fields(command)
		o.do(args...)
		if command != "export" {
			o.do(append(args, "--json")...)
		}
	}
	var runs []store.Run
	if err := json.Unmarshal([]byte(o.do("run", "list", "--limit", "1000", "--json")), &runs); err != nil {
		o.Fatal(err)
	}
	seen := map[string]string{}
	for _, r := range runs {
		if seen[r.Job] == "" && !strings.HasSuffix(r.Job, "tell") || len(runs) < 20 {
			seen[r.Job] = o.do("run", "show", r.ID)
			o.do("run", "show", r.ID, "--json")
		}
		if strings.HasSuffix(r.Job, "tell") && r.State != store.Succeeded {
			o.Errorf("a hook has %s", r.State)
		}
	}
	for _, job := range o.jobs {
		o.do("job", "show", job)
		o.do("job", "show", job, "--json")
		full := slices.IndexFunc(runs, func(r store.Run) bool { return r.Job == job || strings.HasSuffix(r.Job, "/"+job) })
		if full < 0 {
			o.Errorf("%s has no run", job)
			continue
		}
		told := seen[runs[full].Job]
		for _, quiet := range []string{"lists", "refused", "not-given", "hang", "http-cut", "atomic", "target"} {
			if strings.Contains(job, quiet) {
				told = "[hidden]"
			}
		}
		if !strings.Contains(told, "[hidden]") { // otherwise the test would test nothing
			o.Errorf("%s was told no secret: %s", job, told)
		}
	}
	if o.beats.Load() == 0 {
		o.Error("no heartbeat came")
	}
	metrics, err := os.ReadFile(filepath.Join(o.home, "dbjobs.prom"))
	if err != nil {
		o.Fatal(err)
	}
	o.free("metrics", string(metrics))
	lists, err := filepath.Glob(filepath.Join(o.home, "processes-*"))
	if err != nil || len(lists) == 0 {
		o.Fatalf("no list of processes, %v", err)
	}
	for _, file := range lists {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "tick") {
			o.Fatalf("the list of processes has no tick, %v", err)
		}
		o.free("list of processes", string(text))
	}
}

// recorded searches the content of all tables and, for SQLite, the bytes of the files.
func (o *owner) recorded() {
	s, err := store.Open(o.Context(), o.raw, store.Options{})
	if err != nil {
		o.Fatal(err)
	}
	defer s.Close()
	db, err := s.JobDB(store.Options{})
	if err != nil {
		o.Fatal(err)
	}
	defer db.Close()
	db.SetMaxIdleConns(1)
	tables := map[string]string{
		"postgres": "SELECT 'dbjobs.' || table_name FROM information_schema.tables WHERE table_schema = 'dbjobs'",
		"sqlite":   "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
	}[o.engine]
	if tables == "" {
		tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = database() AND table_name LIKE 'dbjobs%'"
	}
	var names []string
	list, err := db.Query(tables)
	if err != nil {
		o.Fatal(err)
	}
	defer list.Close()
	for list.Next() {
		var name string
		if err := list.Scan(&name); err != nil {
			o.Fatal(err)
		}
		names = append(names, name)
	}
	if err := list.Err(); err != nil || len(names) < 14 {
		o.Fatalf("%d tables, %v", len(names), err)
	}
	for table, rows := range rowsOf(o.T, db, names) {
		o.free("table "+table, rows)
	}
	if path, ok := strings.CutPrefix(o.raw, "sqlite:"); ok {
		path, _, _ = strings.Cut(path, "?")
		files, err := filepath.Glob(strings.TrimPrefix(path, "//") + "*")
		if err != nil || len(files) == 0 {
			o.Fatalf("no file, %v", err)
		}
		for _, file := range files {
			bytes, err := os.ReadFile(file)
			if err != nil {
				o.Fatal(err)
			}
			o.free(filepath.Base(file), string(bytes))
		}
	}
}
