package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestOnePassOverSeveralDatabases: one tick serves two databases of each engine that runs. One more database is down,
// one has no schema, and one has an older schema. Each database's job runs once, and the exit code is the worst of all.
func TestOnePassOverSeveralDatabases(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dbjobs := func(args ...string) (code int, stdout, stderr string) {
		var out, talk told
		env := func(name string) (string, bool) { return map[string]string{"HOME": home}[name], name == "HOME" }
		code = run(t.Context(), args, strings.NewReader(""), &out, &talk, env, nil)
		return code, out.String(), talk.String()
	}
	must := func(args ...string) {
		t.Helper()
		if code, _, stderr := dbjobs(args...); code != exitDone {
			t.Fatalf("%q: %d: %s", args, code, stderr)
		}
	}
	var well []string
	t.Logf("two databases each of %v", storetest.Running())
	for _, engine := range storetest.Running() {
		for range 2 {
			url := storetest.URL(t, engine)
			must("migrate", "--database", url)
			must("job", "create", "job", "--repeat-after", "1d", "--sql", "SELECT 1", "--database", url)
			well = append(well, url)
		}
	}
	old := storetest.URL(t, "sqlite")
	must("migrate", "--database", old)
	db := storetest.OpenSQL(t, old)
	if _, err := db.ExecContext(t.Context(), "UPDATE dbjobs_installation SET version = 0, oldest = 0"); err != nil {
		t.Fatal(err)
	}
	args := []string{"tick", "--json", "--database", "postgres://ann:geheim@127.0.0.1:1/down", "--database", old,
		"--database", "sqlite:" + home + "/none.db"}
	want := []int{exitDatabase, exitSchema, exitSchema}
	for _, url := range well {
		args, want = append(args, "--database", url), append(want, exitDone)
	}
	code, stdout, stderr := dbjobs(args...)
	if code != exitSchema {
		t.Errorf("exit code %d, want %d: %s", code, exitSchema, stderr)
	}
	var answer struct {
		Databases []struct {
			Database string
			Exit     int
			Errors   []string
			Report   struct{ Succeeded int }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	var exits []int
	for _, d := range answer.Databases {
		exits = append(exits, d.Exit)
		if d.Exit == exitDone && d.Report.Succeeded != 1 || (d.Exit == exitDone) != (d.Errors == nil) {
			t.Errorf("%+v", d)
		}
		if d.Exit != exitDone && !strings.Contains(stderr, "dbjobs: "+d.Database+": ") {
			t.Errorf("standard error does not name %s: %s", d.Database, stderr)
		}
	}
	if !slices.Equal(exits, want) {
		t.Errorf("exit codes %v, want %v", exits, want)
	}
	if strings.Contains(stdout+stderr, "geheim") {
		t.Error("a password was printed")
	}
}

// TestDatabasesAreServedSideBySide: a job of each database calls a server that answers no call before all calls have
// come.
func TestDatabasesAreServedSideBySide(t *testing.T) {
	t.Parallel()
	const databases = 3
	var all sync.WaitGroup
	all.Add(databases)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		all.Done()
		all.Wait()
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"tick", "--concurrency", "1", "--fail-on-job-error"}
	env := func(name string) (string, bool) { return map[string]string{"HOME": t.TempDir()}[name], name == "HOME" }
	for range databases {
		url := storetest.URL(t, "sqlite")
		for _, more := range [][]string{{"migrate"}, {"job", "create", "call", "--repeat-after", "1d", "--http", server.URL, "--timeout", "30s"}} {
			var talk told
			if code := run(ctx, append(more, "--database", url), strings.NewReader(""), &talk, &talk, env, nil); code != exitDone {
				t.Fatalf("%q: %d: %s", more, code, &talk)
			}
		}
		args = append(args, "--database", url)
	}
	var talk told
	if code := run(ctx, args, strings.NewReader(""), &talk, &talk, env, nil); code != exitDone {
		t.Errorf("%d: %s", code, &talk)
	}
}

// TestMetricsOfSeveralDatabases: the figures of a database are in the file when its own pass has ended, and a pass on another
// database that ends later does not replace them. Here, that one waits for the figures, and later passes write others.
func TestMetricsOfSeveralDatabases(t *testing.T) {
	t.Parallel()
	file, later := filepath.Join(t.TempDir(), "m.prom"), `dbjobs_pass_timestamp_seconds{name="tick",database="shop"} 9999999999`
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			text, _ := os.ReadFile(file)
			stamp := regexp.MustCompile(`(?m)^dbjobs_pass_timestamp_seconds\{name="tick",database="shop"\} [0-9.]+$`)
			if stamp.Match(text) {
				text = append(stamp.ReplaceAll(text, []byte(later)), `gone{database="mail"} 1`+"\n"...)
				_ = os.WriteFile(file, text, 0o600)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}))
	defer server.Close()
	shop, mail := storetest.URL(t, "sqlite"), storetest.URL(t, "sqlite")
	vars := map[string]string{"HOME": t.TempDir(), "DBJOBS_CONFIG": "{databases: {shop: '" + shop + "', mail: '" + mail + "'}}"}
	env := func(name string) (string, bool) { value, found := vars[name]; return value, found }
	for _, args := range [][]string{
		{"migrate", "--database", "shop"}, {"migrate", "--database", "mail"},
		{"job", "create", "slow", "--repeat-after", "1d", "--http", server.URL, "--timeout", "30s", "--database", "mail"},
		{"tick", "--metrics", file},
	} {
		var talk told
		if code := run(t.Context(), args, strings.NewReader(""), &talk, &talk, env, nil); code != exitDone {
			t.Fatalf("%q: %d: %s", args, code, &talk)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for _, want := range []string{later, `dbjobs_pass_succeeded{name="tick",database="mail"} 1`, `dbjobs_pass_succeeded{name="tick",database="shop"} 0`} {
		if strings.Count(got, want+"\n") != 1 {
			t.Errorf("%s is not there once", want)
		}
	}
	if strings.Count(got, "# TYPE dbjobs_pass_succeeded ") != 1 || !strings.HasSuffix(got, "# EOF\n") || strings.Contains(got, "gone") || t.Failed() {
		t.Errorf("%s", got)
	}
}

// TestSecretBesideDatabasesOfTheHost: a variable that names a secret with a URL goes before the databases of the host, as each
// variable with a URL does.
func TestSecretBesideDatabasesOfTheHost(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t, "sqlite")
	extension := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": url}) // the client notices that the rest is missing
	}))
	t.Cleanup(extension.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(extension.URL, "http://"), ":")
	vars := map[string]string{"HOME": t.TempDir(), "DBJOBS_CONFIG": "databases: {one: sqlite:one.db, two: sqlite:two.db}",
		settings.SecretVariable: "arn:jobs", "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port}
	env := func(name string) (string, bool) { value, found := vars[name]; return value, found }
	for _, args := range [][]string{{"migrate"}, {"job", "create", "job", "--repeat-after", "1d", "--sql", "SELECT 1"}, {"tick"}} {
		var out, talk told
		if code := run(t.Context(), args, strings.NewReader(""), &out, &talk, env, nil); code != exitDone {
			t.Fatalf("%q: %d: %s", args, code, &talk)
		} else if args[0] == "tick" && !strings.Contains(out.String(), "1 succeeded") {
			t.Errorf("%s%s", &out, &talk)
		}
	}
}

// TestServeBesideADatabaseThatCannotBeFound: serve starts, says what is wrong with one of several databases, and serves the others.
// If none can be found, it does not start.
func TestServeBesideADatabaseThatCannotBeFound(t *testing.T) {
	t.Parallel()
	good := storetest.URL(t, "sqlite")
	vars := map[string]string{"HOME": t.TempDir(), "DBJOBS_SERVE_TOKEN": itsToken}
	env := func(name string) (string, bool) { value, found := vars[name]; return value, found }
	var talk told
	for _, args := range [][]string{{"migrate"}, {"job", "create", "job", "--repeat-after", "1d", "--sql", "SELECT 1"}} {
		if code := run(t.Context(), append(args, "--database", good), strings.NewReader(""), &talk, &talk, env, nil); code != exitDone {
			t.Fatalf("%q: %d: %s", args, code, &talk)
		}
	}
	vars["DBJOBS_CONFIG"] = "databases: {shop: {url_env: SHOP_URL}, mail: {url_env: MAIL_URL}}"
	serve := func(ctx context.Context) int {
		return run(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, strings.NewReader(""), &talk, &talk, env, nil)
	}
	if code := serve(t.Context()); code != exitUsage || !strings.Contains(talk.String(), "shop: ") || !strings.Contains(talk.String(), "mail: ") {
		t.Fatalf("%d: %s", code, &talk)
	}
	vars["SHOP_URL"] = good
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- serve(ctx) }()
	at := regexp.MustCompile(`mail: .*MAIL_URL is not set, or empty\n.*listening on (http://[0-9.:]+)\b`)
	until(t, "it says what is wrong, and listens", func() bool { return at.MatchString(talk.String()) })
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.FindStringSubmatch(talk.String())[1]+"/tick", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+itsToken)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != http.StatusInternalServerError { // of the other database
		t.Errorf("status %d", a.StatusCode)
	}
	end()
	if code := <-ended; code != exitDone {
		t.Errorf("exit code %d: %s", code, &talk)
	}
	var out told
	if code := run(t.Context(), []string{"run", "list", "--database", good}, strings.NewReader(""), &out, &talk, env, nil); code != exitDone || !strings.Contains(out.String(), "succeeded") {
		t.Errorf("%d: %s%s", code, &out, &talk)
	}
}

// TestOnePassBesideADatabaseWhoseURLIsAway: the URL of one of two databases is in a file on a file server that is away. The pass ends
// within its budget, and the other database is served.
func TestOnePassBesideADatabaseWhoseURLIsAway(t *testing.T) {
	t.Parallel()
	good := storetest.URL(t, "sqlite")
	vars := map[string]string{"HOME": t.TempDir()}
	env := func(name string) (string, bool) { value, found := vars[name]; return value, found }
	var talk told
	for _, args := range [][]string{{"migrate"}, {"job", "create", "job", "--repeat-after", "1d", "--sql", "SELECT 1"}} {
		if code := run(t.Context(), append(args, "--database", good), strings.NewReader(""), &talk, &talk, env, nil); code != exitDone {
			t.Fatalf("%q: %d: %s", args, code, &talk)
		}
	}
	path, _ := storetest.Away(t, good)
	vars["DBJOBS_CONFIG"], vars["GOOD"] = fmt.Sprintf("databases: {shop: {url_file: %q}, mail: {url_env: GOOD}}", path), good
	var out told
	code := run(t.Context(), []string{"tick", "--budget", "3s"}, strings.NewReader(""), &out, &talk, env, nil)
	if code != exitDatabase || !strings.Contains(talk.String(), "shop: database out of reach: ") || !strings.Contains(talk.String(), "was not read in time") {
		t.Errorf("%d: %s", code, &talk)
	}
	if !strings.Contains(out.String(), "mail:") || !strings.Contains(out.String(), "1 succeeded") {
		t.Errorf("the other database: %s", &out)
	}
}

// TestASecretOfAnotherDatabase: a program of a job prints the secret that another program, of a job in another database of the
// same pass, has left in a file. No record has it.
func TestASecretOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	value := "Xq7pLm2Rt9wz"
	vars := map[string]string{"HOME": home, host.SecretPrefix + "TOKEN": value}
	dbjobs := func(args ...string) string {
		t.Helper()
		var out, talk told
		env := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
		environ := []string{host.SecretPrefix + "TOKEN=" + value, "PATH=" + os.Getenv("PATH")}
		if code := run(t.Context(), args, strings.NewReader(""), &out, &talk, env, environ); code != exitDone {
			t.Fatalf("%q: %d: %s", args, code, talk.String())
		}
		return out.String() + talk.String()
	}
	left, one, other := filepath.Join(home, "left"), "sqlite:"+home+"/one.db", "sqlite:"+home+"/other.db"
	for url, step := range map[string]any{
		one:   map[string]any{"run": `printf "%s, " "$T" >"` + left + `.new" && mv "` + left + `.new" "` + left + `"`, "env": map[string]string{"T": "${secret:TOKEN}"}},
		other: map[string]any{"run": `until [ -s "` + left + `" ]; do sleep 0.01; done; cat "` + left + `"`},
	} {
		text, err := json.Marshal(map[string]any{"jobs": map[string]any{"job": map[string]any{"on_startup": true, "shell": step}}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(home, "jobs.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		dbjobs("migrate", "--database", url)
		dbjobs("apply", "-f", file, "--database", url)
	}
	dbjobs("tick", "--startup-id", "1", "--database", one, "--database", other)
	var runs []store.Run
	if err := json.Unmarshal([]byte(dbjobs("run", "list", "--json", "--database", other)), &runs); err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	if said := dbjobs("run", "show", runs[0].ID, "--database", other); strings.Contains(said, value) || !strings.Contains(said, "[hidden], ") {
		t.Error(said)
	}
}
