package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestReaders: every command that only asks needs no other right than to read our tables.
func TestReaders(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if !d.Store.Engine().KnowsLogins {
			return
		}
		owner, err := d.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		file := `
manifest: jobs
defaults: {owner: ` + owner + `}
calendars: {off: {days: [2026-12-25]}}
schedules:
  nightly: {rule: 30 2 * * *, zone: Europe/Berlin, calendar: off}
jobs:
  rollup: {schedule: nightly, sql: SELECT 1}
  bad: {rule: every 1h, sql: SELECT 1 FROM nowhere}
`
		dbjobs(t, d.URL, file, exitDone, "apply", "-f", "-")
		dbjobs(t, d.URL, "", exitDone, "job", "run-now", "bad")
		dbjobs(t, d.URL, "", exitDone, "tick")
		reader, dir := d.Reader(t), t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "jobs.yaml"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			want int
			args []string
		}{
			{exitDone, []string{"status"}}, {exitDone, []string{"errors"}}, {exitDone, []string{"missed"}}, {exitDone, []string{"upcoming"}},
			{exitDone, []string{"job", "list"}}, {exitDone, []string{"job", "show", "rollup"}}, {exitDone, []string{"run", "list"}},
			{exitDone, []string{"run", "show", "bad"}}, {exitDone, []string{"schedule", "list"}}, {exitDone, []string{"calendar", "list"}},
			{1, []string{"check"}}, {exitDone, []string{"diff", "-f", filepath.Join(dir, "jobs.yaml")}}, {exitDone, []string{"export"}},
			{exitDone, []string{"export", "--ical"}}, {exitDone, []string{"simulate"}}, {exitDone, []string{"report", "-o", filepath.Join(dir, "report.html")}},
			{exitDone, []string{"simulate", "--diff", filepath.Join(dir, "jobs.yaml")}}, {exitDone, []string{"doctor"}},
			{5, []string{"job", "pause", "rollup"}}, // it may not write
		} {
			dbjobs(t, reader, "", c.want, c.args...)
		}
	})
}
