package rulecmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"
)

var clock = time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)

func run(t *testing.T, f func(io.Writer, Options) error, o Options) (string, error) {
	t.Helper()
	o.Now = clock
	var b strings.Builder
	err := f(&b, o)
	return b.String(), err
}

func TestNext(t *testing.T) {
	out, err := run(t, Next, Options{Rules: []string{"30 2 * * *"}, Zone: "Europe/Berlin", Count: 2})
	if want := "2026-03-29T01:30:00Z  Sun 2026-03-29 03:30:00 +02:00\n2026-03-30T00:30:00Z  Mon 2026-03-30 02:30:00 +02:00\n"; out != want || err != nil {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
	out, err = run(t, Next, Options{Rules: []string{"30 2 * * *"}, Zone: "Europe/Berlin", Nonexistent: "skip", Count: 1})
	if want := "2026-03-30T00:30:00Z  Mon 2026-03-30 02:30:00 +02:00\n"; out != want || err != nil {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
	out, err = run(t, Next, Options{Rules: []string{"I 0:05"}, After: clock.Add(time.Hour), Count: 1, JSON: true})
	if want := `{"next":["2026-03-28T13:05:00Z"],"exhausted":false}` + "\n"; out != want || err != nil {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
	out, err = run(t, Next, Options{Rules: []string{"at 2020-01-01T00:00"}, Count: 2})
	if want := "none: the rule is exhausted\n"; out != want || err != nil {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
	out, err = run(t, Next, Options{Rules: []string{"at 2026-05-01T00:00"}, Count: 2, JSON: true})
	if want := `{"next":["2026-05-01T00:00:00Z"],"exhausted":true}` + "\n"; out != want || err != nil {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
	for _, o := range []Options{{}, {Rules: []string{"*", "*"}, Count: 1}, {Rules: []string{"0 0 30 2 *"}, Count: 1}, {Rules: []string{"@daily"}}, {Rules: []string{"@daily"}, Count: -1},
		{Rules: []string{"@daily"}, Count: 1, Zone: "CET"}} {
		if out, err := run(t, Next, o); err == nil || out != "" {
			t.Errorf("%+v: %q, %v; want an error alone", o, out, err)
		}
	}
}

func TestNextLines(t *testing.T) {
	const in = `{"id":1,"rule":"30 2 * * *","after":"2026-03-28T12:00:00Z","count":2}
{"id":"a<b","rule":"every 90s","after":"2026-01-01T01:00:00+01:00","count":1}

{"id":[1, {"x":null}],"rule":"DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;COUNT=2","after":"2026-01-01T00:00:00Z","count":3}
{"id":12345678901234567890.10,"rule":"0 0 30 2 *","after":"2026-01-01T00:00:00Z","count":3}
not json
{"id":7,"rule":5}
{"rule":"I 1:00","after":"2026-01-01T00:30:00Z"}
{"id":null,"rule":"@daily","after":"yesterday"}
{"id":8,"rule":"@daily","count":0}
{"id":9,"rule":"@daily","count":-1}
{"id":10}
{"id":11,"rule":"@hourly","extra":true,"count":1}
{"id":12,"rule":"@hourly","cuont":1}
{"id":13,"rule":"30 2 * * *","zone":"America/New_York","count":1}
{"id":14,"rule":"30 2 * * *","zone":"America/Atlantis","count":1}
{"id":15,"rule":"@hourly","count":1}{}
{"id":16,"Rule":"@hourly","count":1}
{"id":17,"rule":"30 2 * * *","zone":"","count":1}`
	const want = `{"id":1,"next":["2026-03-29T01:30:00Z","2026-03-30T00:30:00Z"],"exhausted":false}
{"id":"a<b","next":["2026-01-01T00:01:30Z"],"exhausted":false}
{"id":[1, {"x":null}],"next":["2026-01-02T00:00:00Z"],"exhausted":true}
{"id":12345678901234567890.10,"error":"the rule never fires: no day and time fits all its parts"}
{"id":null,"error":"a line is one object
{"id":7,"error":"a line is one object
{"id":null,"next":["2026-01-01T01:30:00Z","2026-01-01T02:30:00Z","2026-01-01T03:30:00Z","2026-01-01T04:30:00Z","2026-01-01T05:30:00Z"],"exhausted":false}
{"id":null,"error":"\"after\" is \"yesterday\";
{"id":8,"next":[],"exhausted":false}
{"id":9,"error":"\"count\" is -1;
{"id":10,"error":"\"rule\" is missing"}
{"id":11,"error":"the key \"extra\" is unknown; there are \"id\", \"rule\", \"after\", \"count\" and \"zone\""}
{"id":12,"error":"the key \"cuont\" is unknown; did you mean \"count\"?"}
{"id":13,"next":["2026-03-29T06:30:00Z"],"exhausted":false}
{"id":14,"error":"unknown time zone
{"id":15,"error":"a line is one object
{"id":16,"next":["2026-03-28T13:00:00Z"],"exhausted":false}
{"id":17,"next":["2026-03-29T02:30:00Z"],"exhausted":false}
`
	var b strings.Builder
	if err := NextLines(strings.NewReader(in), &b, Options{Zone: "Europe/Berlin", Count: DefaultCount, Now: clock}); err != nil {
		t.Fatal(err)
	}
	got, expect := strings.Split(b.String(), "\n"), strings.Split(want, "\n")
	if len(got) != len(expect) {
		t.Fatalf("%d lines, want %d:\n%s", len(got), len(expect), b.String())
	}
	for i := range got {
		if !strings.HasPrefix(got[i], expect[i]) {
			t.Errorf("line %d: %s\nwant %s", i+1, got[i], expect[i])
		}
		if got[i] != "" && !json.Valid([]byte(got[i])) {
			t.Errorf("line %d is no JSON: %s", i+1, got[i])
		}
	}
}

// A program may ask, wait for the answer, and ask again.
func TestNextLinesAnswersAtOnce(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- NextLines(inR, outW, Options{Now: clock}) }()
	answers := bufio.NewScanner(outR)
	for i := range 3 {
		fmt.Fprintf(inW, `{"id":%d,"rule":"@daily","count":1}`+"\n", i)
		if !answers.Scan() || !strings.Contains(answers.Text(), fmt.Sprintf(`"id":%d,"next":["2026-03-29T00:00:00Z"]`, i)) {
			t.Fatalf("answer %d: %s, %v", i, answers.Text(), answers.Err())
		}
	}
	inW.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestNextLinesTooLong(t *testing.T) {
	in := `{"id":1,"rule":"` + strings.Repeat("x", 3*longestLine) + `"}` + "\n" + `{"id":2,"rule":"@daily","count":1}`
	var b strings.Builder
	if err := NextLines(strings.NewReader(in), &b, Options{Now: clock}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.HasPrefix(got, `{"id":null,"error":"a line has at most`) || !strings.Contains(got, `"id":2,"next":["2026-03-29T00:00:00Z"]`) {
		t.Error(got)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (brokenPipe) Read([]byte) (int, error)  { return 0, io.ErrNoProgress }

func TestNextLinesFailingStreams(t *testing.T) {
	if err := NextLines(strings.NewReader(`{"rule":"@daily"}`), brokenPipe{}, Options{Now: clock}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing: %v", err)
	}
	if err := NextLines(brokenPipe{}, io.Discard, Options{Now: clock}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reading: %v", err)
	}
}

var stress = flag.Int("lines", 5000, "how many lines TestNextLinesMemory asks; its throughput is printed with -v")

// questions makes lines of mixed rules without keeping them in memory.
type questions struct {
	left int
	rest []byte
}

var mixed = []string{"*/15 9-17 * * MON-FRI", "30 2 * * *", "every 90s", "D -1 17:30", "W 1 7:30", "monthly on the last sunday at 07:00",
	"every 2 weeks on tue,fri at 08:00 starting 2026-01-05", `DTSTART;TZID=America/New_York:19970902T090000\nRRULE:FREQ=MONTHLY;BYDAY=1FR`,
	"FREQ=MINUTELY;INTERVAL=7", "at 2030-01-01T00:00", "0 0 1,15W * FRI#2", "0 0 30 2 *", `DTSTART:20000101T000000Z\nRRULE:FREQ=SECONDLY;COUNT=1000000000`}

func (q *questions) Read(p []byte) (int, error) {
	if len(q.rest) == 0 {
		if q.left == 0 {
			return 0, io.EOF
		}
		q.left--
		q.rest = fmt.Appendf(nil, `{"id":%d,"rule":"%s","after":"2026-%02d-15T00:00:00Z","count":3}`+"\n", q.left, mixed[q.left%len(mixed)], q.left%12+1)
	}
	n := copy(p, q.rest)
	q.rest = q.rest[n:]
	return n, nil
}

type lineCounter int

func (c *lineCounter) Write(p []byte) (int, error) {
	*c += lineCounter(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

func TestNextLinesMemory(t *testing.T) {
	var before, after runtime.MemStats
	var lines lineCounter
	o := Options{Zone: "Europe/Berlin", Now: clock}
	if err := NextLines(&questions{left: 100}, io.Discard, o); err != nil { // zones are kept
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := time.Now()
	if err := NextLines(&questions{left: *stress}, &lines, o); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	peak := func() uint64 { runtime.ReadMemStats(&after); return after.HeapSys }()
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d lines in %v, %.0f a second; heap %d KiB from the system, %+d KiB kept", *stress, took, float64(*stress)/took.Seconds(), peak>>10,
		(int64(after.HeapAlloc)-int64(before.HeapAlloc))>>10)
	if int(lines) != *stress {
		t.Errorf("%d answers to %d questions", lines, *stress)
	}
	if after.HeapAlloc > before.HeapAlloc+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
}

func TestExplain(t *testing.T) {
	text, err := run(t, Explain, Options{Rules: []string{"0 9 * * MON-FRI"}, Zone: "Europe/Berlin"})
	if err != nil || !strings.HasPrefix(text, "At 09:00 on Monday to Friday (Europe/Berlin).\n") || !strings.Contains(text, "2026-03-30T07:00:00Z") {
		t.Errorf("%s, %v", text, err)
	}
	data, err := run(t, Explain, Options{Rules: []string{"0 9 * * MON-FRI"}, Zone: "Europe/Berlin", JSON: true})
	var e struct {
		Sentence string
		Next     []struct{ At time.Time }
		Odd      []any `json:"odd_nights"`
	}
	if err != nil || json.Unmarshal([]byte(data), &e) != nil || len(e.Next) != 5 || len(e.Odd) != 2 || !strings.HasPrefix(text, e.Sentence) {
		t.Errorf("%s, %v", data, err)
	}
	if out, err := run(t, Explain, Options{Rules: []string{"nonsense"}}); err == nil || out != "" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestLint(t *testing.T) {
	out, err := run(t, Lint, Options{Rules: []string{"0 1 31 * *", "0 3 * * *"}})
	if err != nil || !strings.Contains(out, "0 1 31 * *\n  month-end: ") || !strings.Contains(out, "0 3 * * *\n  no warnings\n") {
		t.Errorf("%s, %v", out, err)
	}
	out, err = run(t, Lint, Options{Rules: []string{"0 0 30 2 *", "* * * * *"}, JSON: true, MaxPerDay: 10})
	if !errors.Is(err, errLint) || !strings.Contains(out, `"rule":"0 0 30 2 *","error":"the rule never fires`) || !strings.Contains(out, `"code":"dense"`) {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := run(t, Lint, Options{}); err == nil {
		t.Error("no rule, no error")
	}
}

// Whatever the input is, each line is answered by one line of JSON.
func FuzzNextLines(f *testing.F) {
	for _, rule := range mixed {
		f.Add([]byte(`{"id":1,"rule":"` + rule + `","after":"2026-01-15T00:00:00Z","count":2}` + "\n[]\n{}\n"))
	}
	f.Add([]byte("{\"id\":{\"a\":[1,2]},\"rule\":null}\n\x00\n\"\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if err := NextLines(bytes.NewReader(in), &out, Options{Now: clock, Count: 1}); err != nil {
			t.Fatal(err)
		}
		questions := 0
		for line := range bytes.Lines(in) {
			if len(bytes.TrimSpace(line)) > 0 {
				questions++
			}
		}
		answers := 0
		for line := range bytes.Lines(out.Bytes()) {
			if answers++; !json.Valid(line) {
				t.Fatalf("%q is no JSON", line)
			}
		}
		if answers != questions {
			t.Fatalf("%d answers to %d questions", answers, questions)
		}
	})
}

// TestRulesDoNotSteerTheTerminal: messages about a rule quote it, also if the text is not a rule.
func TestRulesDoNotSteerTheTerminal(t *testing.T) {
	for _, rule := range []string{"\x1b[31m", "every 5m \x1b]0;owned\x07", "DTSTART:20260101T000000Z\r\nRRULE:FREQ=DAILY\x9b", "\u202eyad 1 yreve"} {
		var out bytes.Buffer
		o := Options{Rules: []string{rule}, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		_ = Lint(&out, o) // it is refused
		_ = Explain(&out, o)
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) || r == unicode.ReplacementChar }); i >= 0 || out.Len() == 0 {
			t.Errorf("%q: %q", rule, out.String())
		}
	}
}
