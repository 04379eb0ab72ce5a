package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// aWord is the value of a secret that a variable holds.
const aWord = "a-word-that-no-log-has"

// wantsAWord has a job that sends the secret WORD to a server.
func wantsAWord(t *testing.T) (jobs string, sent func() string) {
	t.Helper()
	words := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { words <- r.Header.Get("X-Word") }))
	t.Cleanup(srv.Close)
	return "jobs:\n  tell: {http: {url: " + srv.URL + ", headers: {X-Word: '${secret:WORD}'}}}\n", func() string {
		select {
		case word := <-words:
			return word
		default:
			return "none"
		}
	}
}

// TestServeHasItsVariables: each request finds the secrets that are variables, and the program that sets alarms gets the
// variables of the host without ours. One line warns of a variable with a mistyped name.
func TestServeHasItsVariables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ring, heard := filepath.Join(dir, "ring"), filepath.Join(dir, "heard")
	if err := writeProgram(ring, 0o700, strings.NewReader("#!/bin/sh\nenv >"+heard+"\n")); err != nil {
		t.Fatal(err)
	}
	jobs, sent := wantsAWord(t)
	srv := startServer(t, jobs+"  soon: {rule: every 1h, sql: SELECT 1}\n", "DBJOBS_SECRET_WORD="+aWord, "DBJOBS_WAKE=exec:"+ring, "COLOUR=green", "DBJOBS_LIMITS=1")
	for range 2 {
		if _, err := srv.s.RunNow(t.Context(), "tell", store.Request{}); err != nil {
			t.Fatal(err)
		}
		if a := srv.post("/tick"); a.Succeeded != 1 {
			t.Errorf("%d: %s", a.status, a.body)
		}
		if word := sent(); word != aWord {
			t.Errorf("the job has sent %q", word)
		}
	}
	got, err := os.ReadFile(heard)
	if err != nil {
		t.Fatalf("%v\n%s", err, srv.log)
	}
	if text := string(got); strings.Contains(text, "DBJOBS_") || !strings.Contains(text, "COLOUR=green") {
		t.Errorf("the program that sets alarms has the variables\n%s", text)
	}
	if n := strings.Count(srv.log.String(), "does not know the variable DBJOBS_LIMITS"); n != 1 {
		t.Errorf("%d lines about the mistyped variable:\n%s", n, srv.log)
	}
}

// TestLambdaHasItsVariables: warm invocations find the secrets that are variables, as the cold one does.
func TestLambdaHasItsVariables(t *testing.T) {
	t.Parallel()
	jobs, sent := wantsAWord(t)
	values := map[string]string{"DBJOBS_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "jobs.db"), "DBJOBS_SECRET_WORD": aWord, "DBJOBS_LIMITS": "1"}
	var environ []string
	for name, value := range values {
		environ = append(environ, name+"="+value)
	}
	env := func(name string) (string, bool) { value, set := values[name]; return value, set }
	for _, args := range [][]string{{"migrate"}, {"apply", "-f", "-"}} {
		if code := run(t.Context(), args, strings.NewReader(jobs), io.Discard, io.Discard, env, nil); code != exitDone {
			t.Fatalf("%q: code %d", args, code)
		}
	}
	var log bytes.Buffer
	f := &function{service: service{stderr: &log, env: env, environ: environ, warm: &warm{}}}
	defer f.warm.close()
	for range 2 {
		if code := run(t.Context(), []string{"job", "run-now", "tell"}, strings.NewReader(""), io.Discard, io.Discard, env, nil); code != exitDone {
			t.Fatalf("run-now: code %d", code)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		answer, err := f.Invoke(ctx, nil)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if word := sent(); word != aWord {
			t.Errorf("the job has sent %q:\n%s", word, answer)
		}
	}
	if n := strings.Count(log.String(), "does not know the variable DBJOBS_LIMITS"); n != 1 {
		t.Errorf("%d lines about the mistyped variable:\n%s", n, &log)
	}
}

// TestLambdaChecksTheSchemaOfAKeptConnection: a newer program may have migrated the database since the connection was opened.
func TestLambdaChecksTheSchemaOfAKeptConnection(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	env := func(name string) (string, bool) {
		value := map[string]string{"DBJOBS_DATABASE_URL": url, "DBJOBS_LAMBDA_ALLOW": "status"}[name]
		return value, value != ""
	}
	if code := run(t.Context(), []string{"migrate"}, strings.NewReader(""), io.Discard, io.Discard, env, nil); code != exitDone {
		t.Fatalf("migrate: code %d", code)
	}
	f := &function{service: service{stderr: io.Discard, env: env, warm: &warm{}}}
	defer f.warm.close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status := []byte(`{"command": "status"}`)
	if _, err := f.Invoke(ctx, status); err != nil || f.warm.s == nil {
		t.Fatalf("%v; a connection is kept: %t", err, f.warm.s != nil)
	}
	db, err := f.warm.s.JobDB(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "UPDATE dbjobs_installation SET oldest = 99"); err != nil {
		t.Fatal(err)
	}
	if answer, err := f.Invoke(ctx, status); err == nil || !strings.Contains(err.Error(), "use a newer dbjobs") {
		t.Errorf("error %v, answer %.200s", err, answer)
	}
}

// TestLambdaExportsWhatItCan: what no apply would accept is named beside the manifest of the rest. It is no failure of a job.
func TestLambdaExportsWhatItCan(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	env := func(name string) (string, bool) {
		value := map[string]string{"DBJOBS_DATABASE_URL": url, "DBJOBS_LAMBDA_ALLOW": "export,apply,migrate"}[name]
		return value, value != ""
	}
	f := &function{service: service{stderr: io.Discard, env: env, warm: &warm{}}}
	defer f.warm.close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, event := range []string{`{"command": "migrate"}`, `{"command": "apply", "manifest": {"manifest": "zoo", "jobs": {"apes": {"sql": "SELECT 1"}, "birds": {"sql": "SELECT 2"}}}}`} {
		if answer, err := f.Invoke(ctx, []byte(event)); err != nil {
			t.Fatalf("%s: %v, %s", event, err, answer)
		}
	}
	db, err := f.warm.s.JobDB(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `UPDATE dbjobs_steps SET spec = '{"sql": 5}' WHERE job_id = (SELECT id FROM dbjobs_jobs WHERE name = 'birds')`); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Manifest string
		LeftOut  []string `json:"left_out"`
	}
	answer, err := f.Invoke(ctx, []byte(`{"command": "export"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer, &got); err != nil || !strings.Contains(got.Manifest, "apes") || strings.Contains(got.Manifest, "birds") ||
		len(got.LeftOut) != 1 || !strings.HasPrefix(got.LeftOut[0], "job birds: ") {
		t.Errorf("answer %s, %v", answer, err)
	}
}

// TestLambdaFollowsItsSettings: the database that was kept goes on answering, as one does from which a copy was made that takes its
// place. The function reads after a time where its database is.
func TestLambdaFollowsItsSettings(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		another := storetest.Open(t, d.Server, store.Options{})
		url := d.URL
		env := func(name string) (string, bool) {
			value := map[string]string{settings.URLVariable: url}[name]
			return value, value != ""
		}
		f := &function{service: service{stderr: io.Discard, env: env, warm: &warm{}}}
		defer f.warm.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		invoke := func(passes, others int) {
			t.Helper()
			if _, err := f.Invoke(ctx, []byte(`{"command": "tick"}`)); err != nil {
				t.Fatal(err)
			}
			count := "SELECT coalesce(sum(passes), 0) FROM " + d.Table("ticks")
			if n, o := d.Int(t, count), another.Int(t, count); n != passes || o != others {
				t.Errorf("%d passes in the first database, %d in the other one; want %d, %d", n, o, passes, others)
			}
		}
		invoke(1, 0)
		url = another.URL
		invoke(2, 0)
		f.warm.opened = f.warm.opened.Add(-store.ConnLifetime)
		invoke(2, 1)
		invoke(2, 2)
	})
}
