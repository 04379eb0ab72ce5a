package manifest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

var now = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func decode(t *testing.T, text string) (*Manifest, error) {
	t.Helper()
	return Read([]Input{{Path: "jobs.yaml", In: strings.NewReader(text)}}, Options{Name: "jobs", Now: now})
}

// TestProblems reads every file of testdata/bad. The first lines of a file are comments with the expected problems.
func TestProblems(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(text)) {
				if w, ok := strings.CutPrefix(line, "#! "); ok {
					want = append(want, strings.TrimSpace(w))
				}
			}
			m, err := decode(t, string(text))
			if m != nil {
				err = m.Resolve(&store.Known{}, Targets{})
			}
			if err == nil {
				t.Fatal("was accepted")
			}
			got := strings.Split(err.Error(), "\n")
			for i, w := range want { // another package words the text after …
				if w, open := strings.CutSuffix(w, "…"); open && i < len(got) && strings.HasPrefix(got[i], w) {
					want[i] = got[i]
				}
			}
			if reflect.DeepEqual(got, want) {
				return
			}
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Errorf("%s: line %d of its %d problems differs; found\n\t%s\nwant\n\t%s\nedit its lines that begin with #!", path, i+1, len(got), strings.Join(got[i:], "\n\t"), strings.Join(want[i:], "\n\t"))
		})
	}
}

// > of PowerShell writes UTF-16.
func TestUTF16IsNamed(t *testing.T) {
	for _, text := range []string{"\xff\xfej\x00o\x00", "\xfe\xff\x00j\x00o"} {
		if _, err := decode(t, text); err == nil || !strings.Contains(err.Error(), "1:1: the file is UTF-16; save it as UTF-8") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestRoundTrip: the output of Encode is read back as the same manifest, also if that manifest was itself read back.
func TestRoundTrip(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m, err := decode(t, string(text))
			if err != nil {
				t.Fatal(err)
			}
			checkRoundTrip(t, m)
		})
	}
}

func checkRoundTrip(t *testing.T, m *Manifest) {
	t.Helper()
	var out bytes.Buffer
	if err := Encode(&out, m.Name, m.Definitions, ""); err != nil {
		t.Fatal(err)
	}
	again, err := decode(t, out.String())
	if err != nil {
		t.Fatalf("what was written is refused: %v\n%s", err, out.String())
	}
	again.references, m.references, m.Named = nil, nil, again.Named
	m.Swallowed = nil // what is written keeps its lines
	again.places, m.places = nil, nil
	if len(again.Zoneless) > 0 {
		t.Errorf("what was written names no zone for %q\n%s", again.Zoneless, out.String())
	}
	again.Zoneless, m.Zoneless = nil, nil
	again.Chosen, m.Chosen = nil, nil // a default is left out
	if !reflect.DeepEqual(m, again) {
		t.Errorf("read\n%+v\nwrote\n%s\nread again\n%+v", m, out.String(), again)
	}
}

// A heartbeat is given as a whole: a job with its own heartbeat has no part of the default heartbeat.
func TestHeartbeatIsGivenAsAWhole(t *testing.T) {
	m, err := decode(t, "defaults: {heartbeat: \"https://h/${job}\"}\njobs:\n  a: {sql: SELECT 1}\n  b: {heartbeat: {success: https://h/b}, sql: SELECT 1}\n  c: {heartbeat: {}, sql: SELECT 1}\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []store.Heartbeat{{URL: "https://h/${job}"}, {Success: "https://h/b"}, {}} {
		if j := m.Jobs[i]; j.Heartbeat != want {
			t.Errorf("%s has %+v, want %+v", j.Name, j.Heartbeat, want)
		}
	}
}

func schedules(name string) *store.Known {
	return &store.Known{Schedules: map[string]store.Schedule{name: {}}}
}

// A job can take back each default of the file whose usual value is nothing.
func TestDefaultsAreTakenBack(t *testing.T) {
	for _, p := range store.Policies() {
		if !p.Shared || p.Default != nil || strings.HasPrefix(p.Key, "heartbeat.") {
			continue
		}
		given, nothing := "7", "0"
		switch p.Of(&store.Job{}).(type) {
		case *string:
			given, nothing = "j", `""`
		case *[]string:
			given, nothing = "[x]", "[]"
		case *store.Duration:
			given, nothing = "7s", "0s"
		}
		outer, inner, nested := strings.Cut(p.Key, ".")
		if nested {
			given, nothing, outer = "{"+inner+": "+given+"}", "{"+inner+": "+nothing+"}", "on"
		}
		m, err := decode(t, fmt.Sprintf("groups: {j: 1}\ndefaults: {%s: %s}\njobs: {j: {%[1]s: %[3]s, sql: SELECT 1}}\n", outer, given, nothing))
		if err != nil {
			t.Error(err)
			continue
		}
		if is, zero := p.Of(&m.Jobs[0]), p.Of(&store.Job{}); !reflect.DeepEqual(is, zero) {
			t.Errorf("%s: %v, want %v", p.Key, is, zero)
		}
	}
}

func TestNamesOfSchedulesMayBeInTheDatabase(t *testing.T) {
	m, err := decode(t, "jobs: {a: {schedule: nightly, sql: SELECT 1}}")
	if err != nil {
		t.Fatal(err)
	}
	if len(m.References()) == 0 {
		t.Error("nothing to resolve")
	}
	if err := m.Resolve(schedules("nightly"), Targets{}); err != nil {
		t.Error(err)
	}
	err = m.Resolve(schedules("night"), Targets{})
	if err == nil || !strings.Contains(err.Error(), "jobs.yaml:1:22: jobs.a.schedule: ") || !strings.Contains(err.Error(), `there is no schedule "nightly"`) {
		t.Errorf("got %v", err)
	}
}

func TestManifestName(t *testing.T) {
	for file, want := range map[string]string{"jobs.yaml": "jobs", "etc/reports.prod.yml": "reports.prod", "jobs": "jobs"} {
		if got := NameOf(file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("etc/jobs.d", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, here := range []string{".", "etc", "jobs.d"} { // a folder has one name, however it is given
		t.Chdir(here)
		path := map[string]string{".": "etc/jobs.d/", "etc": "jobs.d", "jobs.d": "."}[here]
		if got := NameOf(path); got != "jobs.d" {
			t.Errorf("%s: got %q", path, got)
		}
	}
	for text, want := range map[string]string{"jobs: {}": "jobs", "manifest: ''": "", "manifest: x": "x"} {
		m, err := decode(t, text)
		if err != nil || m.Name != want || m.Named != (want == "x") {
			t.Errorf("%s: name %q, want %q (%v)", text, m.Name, want, err)
		}
	}
}

// TestAliasBomb: a small file that stands for millions of values is refused after a bounded number of them.
func TestAliasBomb(t *testing.T) {
	jobs := 1000
	if testing.Short() {
		jobs = 100 // 40 of them are too much
	}
	var b strings.Builder
	b.WriteString("x-step: &s {sql: SELECT 1}\nx-steps: &steps [")
	b.WriteString(strings.Repeat("*s,", 3000) + "*s]\njobs:\n")
	for i := range jobs {
		b.WriteString("  job" + string(rune('a'+i%26)) + strings.Repeat("x", i/26) + ": {steps: *steps}\n")
	}
	_, err := decode(t, b.String())
	if e, ok := errors.AsType[*Error](err); !ok || len(e.Problems) != 1 || !strings.Contains(err.Error(), "where aliases count each time") {
		t.Errorf("got %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, glob := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files, _ := filepath.Glob(glob)
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		defer func() { // the allowed cost of a file: not time, which depends on the machine
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 {
				t.Errorf("%d bytes of text made it allocate %d MB", len(text), n>>20)
			}
		}()
		m, err := Read([]Input{{Path: "jobs.yaml", In: strings.NewReader(text)}}, Options{Name: "jobs", Now: now})
		if err != nil {
			e, ok := errors.AsType[*Error](err)
			if !ok || len(e.Problems) == 0 {
				t.Fatalf("not a list of problems: %v", err)
			}
			return
		}
		checkRoundTrip(t, m)
	})
}

// TestExport: a file with every policy is written unchanged, byte for byte.
func TestExport(t *testing.T) {
	text, err := os.ReadFile("testdata/export.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := decode(t, string(text))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Encode(&out, m.Name, m.Definitions, ""); err != nil {
		t.Fatal(err)
	}
	if out.String() != string(text) {
		t.Errorf("read\n%s\nwritten\n%s", text, out.String())
	}
}

var update = flag.Bool("update", false, "write testdata/flags.txt anew; read the difference before committing it")

// TestFlags: the flags of job create, by name, with their keys, kinds and help.
func TestFlags(t *testing.T) {
	var lines []string
	for _, f := range append(append([]Flag(nil), RuleFlags...), JobFlags...) {
		lines = append(lines, fmt.Sprintf("--%s %s %d %s\n", f.Name, f.Path, f.Kind, f.Help))
	}
	slices.Sort(lines)
	const golden = "testdata/flags.txt"
	got := strings.Join(lines, "")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("found\n%s\nwant\n%s\n`go test ./cmd/internal/manifest -run TestFlags -update` writes it anew", got, want)
	}
}

func TestTargetsOfTheHost(t *testing.T) {
	m, err := decode(t, "jobs: {a: {target: shop, sql: SELECT 1}, b: {steps: [{target: crm, sql: SELECT 1}]}}")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Resolve(&store.Known{}, Targets{"here", []string{"crm", "shop"}}); err != nil {
		t.Error(err)
	}
	err = m.Resolve(&store.Known{}, Targets{"here", []string{"shpo"}})
	want := "jobs.yaml:1:20: jobs.a.target: the settings of this host (here) have no target \"shop\"; did you mean shpo?\n" +
		"jobs.yaml:1:63: jobs.b.steps[0].target: the settings of this host (here) have no target \"crm\"; the targets are shpo"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
