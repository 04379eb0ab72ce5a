package main

import (
	"io"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/store"
)

// TestEditThatOnlyFitsWhatWas: an edit fits the job as it was read, and no longer the job as it is when the change is written,
// because somebody else has made the same change in between. The command ends with what is wrong.
func TestEditThatOnlyFitsWhatWas(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if code, said := invoke(t.Context(), t, home, nil, io.Discard, "job", "create", "job", "--sql", "SELECT 1"); code != exitDone {
		t.Fatal(said)
	}
	c, s := opened(t, home)
	defer s.Close()
	edits := 0
	err := c.alterJob(t.Context(), s, "job", func(j store.Job) (*manifest.Manifest, error) {
		if edits++; edits > 1 {
			return nil, &store.FieldError{Subject: "job job", Field: "schedules", Problem: "it uses schedule nightly already"}
		}
		return manifest.Edit{Command: "job alter", Given: manifest.Given{"priority": {"1"}}}.Job(j)
	})
	if err == nil || !strings.Contains(err.Error(), "it uses schedule nightly already") || edits < 2 {
		t.Errorf("%d edits: %v", edits, err)
	}
}
