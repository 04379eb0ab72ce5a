package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/lint"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// TestReadmeNamesTheWarnings: the table of warnings has each code of a warning, and no other.
func TestReadmeNamesTheWarnings(t *testing.T) {
	var named []string
	for _, row := range readPage(t, programPage).rows("What may not be meant") {
		named = append(named, codeIn(row[0])...)
	}
	if slices.Sort(named); !slices.Equal(named, lint.Codes()) {
		t.Errorf("%s names the warnings\n%q\nand there are\n%q", programPage, named, lint.Codes())
	}
}

// remarks are the warnings that a good manifest may have. They are about its times, and about schedules that may be for
// other files. A user has to read them once.
var remarks = []string{rules.WarnClockChange, rules.WarnPastStart, rules.WarnDense, lint.Zoneless, lint.UnusedSchedule}

// ofThePages is when the manifests of the pages are read: their dates have not come yet.
var ofThePages = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// TestGoodManifestsGetNoWarning: the manifests of the pages, and the manifests that the tests call good, have no
// warnings other than remarks.
func TestGoodManifestsGetNoWarning(t *testing.T) {
	files := map[string]string{}
	good, err := filepath.Glob(filepath.Join(root, "cmd/internal/manifest/testdata/good/*.yaml"))
	if err != nil || len(good) == 0 {
		t.Fatalf("no good manifests: %v", err)
	}
	for _, path := range good {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = string(text)
	}
	for _, p := range pages(t) {
		for _, b := range p.blocks() {
			if b.language == "yaml" && regexp.MustCompile(`(?m)^(jobs|schedules):`).MatchString(b.text) {
				files[p.path+"\n"+b.text] = b.text
			}
		}
	}
	for path, text := range files {
		m, err := manifest.Read([]manifest.Input{{Path: path, In: strings.NewReader(text)}}, manifest.Options{Name: "jobs", Now: ofThePages, Env: unset})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, w := range lint.Of(lint.Options{Manifest: m, Changes: allNew(m), Env: unset, Now: ofThePages}) {
			if !slices.Contains(remarks, w.Code) {
				t.Errorf("%s: %s", path, w)
			}
		}
	}
}

// allNew are the changes of a manifest in an empty database.
func allNew(m *manifest.Manifest) (list []store.Change) {
	for _, s := range m.Schedules {
		list = append(list, store.Change{Kind: "schedule", Subject: s.Name, Action: "create"})
	}
	for _, j := range m.Jobs {
		list = append(list, store.Change{Kind: "job", Subject: j.Name, Action: "create"})
	}
	return list
}
