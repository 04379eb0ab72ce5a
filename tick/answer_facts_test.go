package tick_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A step can name the answer of the server to an earlier step, or the exit status of the program of an earlier step.
func TestAnswersTellLaterSteps(t *testing.T) {
	answers := map[string]string{ // by the path; after a status
		"made":   `201 {"id": 12345678901234567890, "name": "ä\"<", "items": [{"id": "a"}, {"id": "b"}], "none": null}`,
		"list":   `200 [7, 8]`,
		"text":   `200 it is done`,
		"long":   `200 {"id": 1, "wide": "` + strings.Repeat("x", 17<<10) + `"}`,
		"grows":  `200 {"id": 1, "wide": "` + strings.Repeat("<", 8<<10) + `"}`,
		"nobody": `503 {"why": "busy"}`,
		"odd":    `200 {"R&D": 5, "a \"b\"": {"<": 6}}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body, _ := strings.Cut(answers[r.URL.Path[1:]], " ")
		w.WriteHeader(map[string]int{"200": 200, "201": 201, "503": 503}[status])
		_, _ = w.Write([]byte(body)) // the client notices that the rest is missing
	}))
	t.Cleanup(s.Close)
	steps := map[string]struct {
		path string // or a text for the shell
		args []any
		want string // of effects, or of the error
	}{
		"made": {"made", []any{"${steps.ask.code}", "${steps.ask.body.id}", "<${steps.ask.body.name}>", "${steps.ask.body.items.1.id}", "${steps.ask.body.none}", "${steps.ask.body.items}"},
			`succeeded | 201 | 12345678901234567890 | <ä"<> | b | NULL | [{"id":"a"},{"id":"b"}]`},
		"list":       {"list", []any{"${steps.ask.body.1}", "${steps.ask.body}"}, "succeeded | 8 | [7,8]"},
		"failure":    {"nobody", []any{"${steps.ask.status}", "${steps.ask.code}", "${steps.ask.body.why}"}, "succeeded | failed | 503 | busy"},
		"odd":        {"odd", []any{"${steps.ask.body.R&D}", `${steps.ask.body.a "b".<}`}, "succeeded | 5 | 6"},
		"text":       {"text", []any{"${steps.ask.code}", "${steps.ask.body}"}, "succeeded | 200 | NULL"},
		"no member":  {"made", []any{"${steps.ask.body.idd}"}, `the answer of step "ask" has no such member; its members are id, items, name, none`},
		"no object":  {"list", []any{"${steps.ask.body.id}"}, `the answer of step "ask" has no such member`},
		"no JSON":    {"text", []any{"${steps.ask.body.id}"}, `step "ask" had no answer, or one that is not JSON, or has more than 16 KiB`},
		"too long":   {"long", []any{"${steps.ask.body.id}"}, `step "ask" had no answer, or one that is not JSON, or has more than 16 KiB`},
		"grows":      {"grows", []any{"${steps.ask.code}", "${steps.ask.body.id}"}, "succeeded | 200 | 1"},
		"left out":   {"made", []any{"${steps.other.code}", "${steps.other.body.id}"}, "succeeded | NULL | NULL"},
		"no server":  {"gone", []any{"${steps.ask.status}", "${steps.ask.code}", "${steps.ask.body}"}, "succeeded | failed | NULL | NULL"},
		"program":    {"echo 7; exit 3", []any{"${steps.ask.code}", "${steps.ask.output}"}, "succeeded | 3 | 7\n"},
		"program, 0": {"true", []any{"${steps.ask.code}"}, "succeeded | 0"},
	}
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (job varchar(20), n int, told varchar(500))")
		host := &executor.Host{Addresses: []executor.Addresses{{Range: netip.MustParsePrefix("127.0.0.0/8")}}, Programs: []executor.Program{{Path: "/bin/sh"}}}
		tk := ticktest.New(t, d.Store)
		x := executor.NewHTTP(host)
		defer x.Close()
		sh, err := executor.KindOf("shell").Open(nil, host)
		if err != nil {
			t.Fatal(err)
		}
		tk.Executors["http"], tk.Executors["shell"] = x, sh
		var defs store.Definitions
		for name, c := range steps {
			ask := store.Step{Name: "ask", Executor: "http", OnFailure: "next"}
			var spec any = executor.HTTPSpec{URL: s.URL + "/" + c.path}
			switch {
			case strings.HasPrefix(name, "program"):
				ask.Executor, spec = "shell", executor.ProgramSpec{Run: []string{c.path}}
			case c.path == "gone":
				spec = executor.HTTPSpec{URL: "http://127.0.0.1:1/"}
			}
			if ask.Spec, err = json.Marshal(spec); err != nil {
				t.Fatal(err)
			}
			j := store.Job{Name: name, Steps: []store.Step{ask, note(d, false, name, c.args...)}}
			if name == "left out" {
				other := ask
				other.Name, j.Steps[0].OnSuccess = "other", "step:note"
				j.Steps = slices.Insert(j.Steps, 1, other)
			}
			defs.Jobs = append(defs.Jobs, j)
		}
		ticktest.Apply(t, d, defs)
		for name := range steps {
			ticktest.Request(t, d, name)
		}
		ticktest.Pass(t, tk)
		for name, c := range steps {
			got := noted(t, d, name)
			if run := ticktest.LastRun(t, d, name); run.Error != "" {
				got = run.Error
			}
			if got != c.want && !strings.HasSuffix(got, ": "+c.want) {
				t.Errorf("%s\n%s, want\n%s", name, got, c.want)
			}
		}
	})
}
