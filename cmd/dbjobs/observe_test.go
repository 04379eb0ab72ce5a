package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/cmd/internal/metrics"
)

// checkEmbedded compares a log line with the specification of CloudWatch's embedded metric format.
func checkEmbedded(t testing.TB, line map[string]any) {
	t.Helper()
	text, err := json.Marshal(line["_aws"])
	if err != nil {
		t.Fatal(err)
	}
	var meta struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&meta); err != nil || meta.Timestamp < 1e12 || len(meta.CloudWatchMetrics) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	d := meta.CloudWatchMetrics[0]
	if d.Namespace != metrics.Namespace || len(d.Dimensions) != 1 || len(d.Dimensions[0]) == 0 || len(d.Metrics) < 10 || len(d.Metrics) > 100 {
		t.Errorf("%s", text)
	}
	for _, set := range d.Dimensions {
		for _, name := range set {
			if value, _ := line[name].(string); value == "" || len(value) > 1024 {
				t.Errorf("the dimension %s is no text in the line: %v", name, line[name])
			}
		}
	}
	for _, m := range d.Metrics {
		if _, ok := line[m.Name].(float64); !ok {
			t.Errorf("the metric %s is no number in the line: %v", m.Name, line[m.Name])
		}
		if m.Unit != "Count" && m.Unit != "Seconds" {
			t.Errorf("the metric %s has the unit %q", m.Name, m.Unit)
		}
	}
}

var (
	metaLine   = regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)\{name="((?:[^"\\\n]|\\["\\n])*)"\} (-?[0-9.]+(?:e[+-][0-9]+)?)$`)
)

// readProm reads a file of metrics by the strict rules of both Prometheus' text format and OpenMetrics. Each family has
// HELP, TYPE and its samples together, once. There is no timestamp, no empty line, and EOF is at the end.
func readProm(t testing.TB, file string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	body, ended := strings.CutSuffix(string(text), "# EOF\n")
	if !ended {
		t.Fatalf("no end:\n%s", text)
	}
	family := ""
	for lines, part := bufio.NewScanner(strings.NewReader(body)), 0; lines.Scan(); part = (part + 1) % 3 {
		line := lines.Text()
		if m := metaLine.FindStringSubmatch(line); part < 2 {
			if m == nil || m[1] != []string{"HELP", "TYPE"}[part] || part == 1 && (m[2] != family || m[3] != "gauge") {
				t.Fatalf("unexpected %q", line)
			}
			family = m[2]
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || m[1] != family {
			t.Fatalf("unexpected %q", line)
		}
		if _, twice := values[family]; twice {
			t.Errorf("%s is there twice", family)
		}
		if values[family], err = strconv.ParseFloat(m[3], 64); err != nil {
			t.Error(err)
		}
	}
	return values
}

// TestMetricsFile: the figures that node_exporter reads after a pass, and after a pass that failed.
func TestMetricsFile(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "jobs.prom")
	for _, args := range [][]string{
		{"job", "create", "good", "--sql", "SELECT 1"}, {"job", "create", "bad", "--sql", "SELECT nothing"}, {"job", "create", "idle", "--rule", "at 2099-01-01T00:00:00 UTC", "--sql", "SELECT 1"},
		{"job", "run-now", "good"}, {"job", "run-now", "bad"}, {"tick", "--metrics", file, "--name", `odd "name"\`},
	} {
		if code, said := invoke(t.Context(), t, home, nil, &bytes.Buffer{}, args...); code != exitDone {
			t.Fatalf("%q: code %d, said %q", args, code, said)
		}
	}
	got := readProm(t, file)
	for name, want := range map[string]float64{"started": 2, "succeeded": 1, "failed": 1, "errors": 0, "lost": 0, "missed": 0, "paused_jobs": 0} {
		if v, there := got["dbjobs_pass_"+name]; !there || v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if got["dbjobs_pass_decided"] < 3 || got["dbjobs_pass_late_seconds"] <= 0 || got["dbjobs_pass_next_due_seconds"] <= 0 || got["dbjobs_pass_duration_seconds"] <= 0 || got["dbjobs_pass_timestamp_seconds"] < 1e9 {
		t.Errorf("%v", got)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if code, said := invoke(t.Context(), t, home, nil, &bytes.Buffer{}, "tick", "--dry-run", "--metrics", file); code != exitDone {
		t.Errorf("a dry run: code %d, said %q", code, said)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) { // it would hide that no tick comes
		t.Errorf("%v: a dry run has changed the file: %s", err, after)
	}
	if _, said := invoke(t.Context(), t, home, nil, &bytes.Buffer{}, "tick", "--dry-run", "--metrics", "emf"); strings.Contains(said, "_aws") {
		t.Errorf("a dry run has metrics: %s", said)
	}
	if code, _ := invoke(t.Context(), t, t.TempDir(), nil, &bytes.Buffer{}, "tick", "--metrics", file); code != exitUsage {
		t.Errorf("code %d without a database", code)
	}
	if got := readProm(t, file); got["dbjobs_pass_errors"] != 1 {
		t.Errorf("%v", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v: more than the file is left", left, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestMetricsFileOfEachTrigger: triggers that share a setting have files of their own, and so the figures of each stay. A name may
// have what no name of a file has, and be as long as names are.
func TestMetricsFileOfEachTrigger(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	shared, long := filepath.Join(dir, "dbjobs-${name}.prom"), strings.Repeat("ü", 90)
	for _, args := range [][]string{
		{"migrate"}, {"tick", "--metrics", shared}, {"work", "--metrics", shared}, {"tick", "--name", "../shop 1", "--metrics", shared},
		{"tick", "--name", long, "--metrics", shared},
	} {
		if code, said := invoke(t.Context(), t, home, nil, &bytes.Buffer{}, args...); code != exitDone {
			t.Fatalf("%q: code %d, said %q", args, code, said)
		}
	}
	for _, name := range []string{"tick", "work", "..%2Fshop+1", long} {
		if got := readProm(t, filepath.Join(dir, "dbjobs-"+name+".prom")); got["dbjobs_pass_timestamp_seconds"] == 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if code, said := invoke(t.Context(), t, home, nil, &bytes.Buffer{}, "tick", "--metrics", "dbjobs-${trigger}.prom"); code != exitUsage || !strings.Contains(said, "${name}") {
		t.Errorf("code %d, said %q", code, said)
	}
}

// TestMetricsFilesOfOneName: DBJOBS_NAME names ticks, and the workers beside them are named after it, so the figures of both stay, also
// where the name is the usual one of workers, or is as long as a name may be. The name of a flag is taken as it is.
func TestMetricsFilesOfOneName(t *testing.T) {
	long := strings.Repeat("ü", 95)
	for name, worker := range map[string]string{"shop": "shop-work", "work": "work-work", long: strings.Repeat("ü", 92) + "-work"} {
		dir, home := t.TempDir(), t.TempDir()
		values := map[string]string{"HOME": home, "DBJOBS_NAME": name, metricsVariable: filepath.Join(dir, "${name}.prom")}
		env := func(name string) (string, bool) { value, set := values[name]; return value, set }
		for _, args := range [][]string{{"migrate"}, {"tick"}, {"work"}, {"work", "--name", "reports"}} {
			var said bytes.Buffer
			if code := run(t.Context(), args, nil, io.Discard, &said, env, nil); code != exitDone {
				t.Fatalf("%s: %q: code %d, said %q", name, args, code, &said)
			}
		}
		for _, name := range []string{name, worker, "reports"} {
			if got := readProm(t, filepath.Join(dir, name+".prom")); got["dbjobs_pass_timestamp_seconds"] == 0 {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

// TestLogFormats: for programs, a pass is one line, which has its errors. For people, it is a table.
func TestLogFormats(t *testing.T) {
	home := t.TempDir()
	for _, args := range [][]string{{"job", "create", "bad", "--sql", "SELECT nothing"}, {"job", "run-now", "bad"}} {
		if code, said := invoke(t.Context(), t, home, nil, &bytes.Buffer{}, args...); code != exitDone {
			t.Fatalf("%q: code %d, said %q", args, code, said)
		}
	}
	one := func(want int, home string, args ...string) map[string]any {
		t.Helper()
		var out bytes.Buffer
		code, said := invoke(t.Context(), t, home, nil, &out, args...)
		var line map[string]any
		if err := json.Unmarshal([]byte(said), &line); err != nil || code != want || out.Len() > 0 {
			t.Fatalf("%q: %v: code %d, said %q, printed %q", args, err, code, said, &out)
		}
		return line
	}
	line := one(exitDone, home, "tick", "--log-format", "gcp")
	labels, _ := line["logging.googleapis.com/labels"].(map[string]any)
	if line["severity"] != "WARNING" || line["message"] != "pass" || labels["dbjobs_name"] != "tick" || line["failed"] != 1.0 || line["_aws"] != nil {
		t.Errorf("%v", line)
	}
	if f, _ := line["failures"].([]any); len(f) != 1 || !strings.Contains(line["time"].(string), "Z") {
		t.Errorf("%v", line)
	}
	line = one(exitDone, home, "tick", "--log-format", "json", "--metrics", "emf")
	checkEmbedded(t, line)
	if line["level"] != "WARN" || line["msg"] != "pass" || line["failing_jobs"] != 1.0 { // as long as the job is failing
		t.Errorf("%v", line)
	}
	for name, args := range map[string][]string{"work": {"work"}, "reports": {"work", "--name", "reports"}} {
		line = one(exitDone, home, append(args, "--log-format", "json", "--metrics", "emf")...)
		if checkEmbedded(t, line); line["name"] != name {
			t.Errorf("%q is named %v", args, line["name"])
		}
	}
	if line = one(exitUsage, t.TempDir(), "tick", "--log-format", "json"); line["level"] != "ERROR" || line["errors"] != 1.0 || line["error"] == nil {
		t.Errorf("%v", line)
	}
	if line = one(exitUsage, home, "job", "show", "nobody", "--log-format", "json"); line["level"] != "ERROR" || !strings.Contains(line["msg"].(string), "nobody") {
		t.Errorf("%v", line)
	}
	for _, args := range [][]string{{"tick", "--log-format", "xml"}, {"tick", "--metrics", "statsd"}} {
		if code, said := invoke(t.Context(), t, home, nil, &bytes.Buffer{}, args...); code != exitUsage || !strings.Contains(said, "want") {
			t.Errorf("%q: code %d, said %q", args, code, said)
		}
	}
}

// TestLogFormatOfMistakes: the line about a command line that means nothing has the format that the variable asks for, as
// each other line has. A format that does not exist is none.
func TestLogFormatOfMistakes(t *testing.T) {
	json, gcp := map[string]string{"DBJOBS_LOG_FORMAT": "json"}, map[string]string{"DBJOBS_LOG_FORMAT": "gcp"}
	for _, c := range []struct {
		env   map[string]string
		args  []string
		begin string
	}{
		{json, []string{"tick", "--quite"}, `{"time":`},
		{json, []string{"tik"}, `{"time":`},
		{gcp, nil, `{"time":`},
		{json, []string{"--log-format", "text", "tik"}, "dbjobs: "},
		{json, []string{"tick", "--log-format", "xml", "--quite"}, "dbjobs: "},
		{map[string]string{"DBJOBS_LOG_FORMAT": "json", "DBJOBS_LIMIT": "x"}, []string{"tick"}, `{"time":`},
		{map[string]string{"DBJOBS_LOG_FORMAT": "xml"}, []string{"tik"}, "dbjobs: "},
	} {
		var said bytes.Buffer
		env := func(name string) (string, bool) { value, ok := c.env[name]; return value, ok }
		code := run(t.Context(), c.args, nil, &bytes.Buffer{}, &said, env, nil)
		if code != exitUsage || !strings.HasPrefix(said.String(), c.begin) {
			t.Errorf("%v %q: code %d, said %q, want a line that begins with %s", c.env, c.args, code, &said, c.begin)
		}
	}
}
