package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestTheWalkOnGoogleCloud: the command lines of the last steps in terraform/README.md make the schema and a job that
// is due within a minute after it is made.
func TestTheWalkOnGoogleCloud(t *testing.T) {
	readme, err := os.ReadFile("../../terraform/README.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile("(?m)^\\d\\. `\\$\\(terraform output -raw run\\) (.+)`$").FindAllStringSubmatch(string(readme), -1)
	if len(steps) != 2 {
		t.Fatalf("found %d steps that run the job: %q", len(steps), steps)
	}
	if !slices.Contains(storetest.Engines(t), "postgres") { // the example is for it
		storetest.Skip(t, "a test for PostgreSQL, which DBJOBS_TEST_DATABASES leaves out")
	}
	c := &cloud{TB: t, url: storetest.URL(t, "postgres")}
	for _, step := range steps {
		c.dbjobs(gcloudArgs(step[1])...)
	}
	c.sql = storetest.OpenSQL(t, c.url)
	c.dbjobs("tick") // which decides what is due
	if n := c.number("SELECT count(*) FROM dbjobs.v_jobs WHERE last_state = 'succeeded' OR next_run <= created_at + interval '1 minute'"); n != 1 {
		t.Errorf("%d jobs have run, or are due within a minute: %s", n, c.text("SELECT name || ' ' || state || ' ' || coalesce(next_run::text, '') FROM dbjobs.v_jobs"))
	}
}

// gcloudArgs splits a value of --args as gcloud does: at commas, or at the text between two carets at its beginning.
func gcloudArgs(text string) []string {
	text = strings.Trim(text, "'")
	by := ","
	if rest, ok := strings.CutPrefix(text, "^"); ok {
		by, text, _ = strings.Cut(rest, "^")
	}
	return strings.Split(text, by)
}
