package executor

import (
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// What a request for a run has given is sent as it is: a text that looks like a reference is none, and leads to no secret.
func TestHTTPSendsArgumentsUnchanged(t *testing.T) {
	s, got := receiver(t, nil)
	x := NewHTTP(loopback(map[string]string{"TOKEN": "t0ken"}))
	t.Cleanup(func() { x.Close() })
	const all = `{"list":["${secret:TOKEN}","${run_id}"],"open":"${","unknown":"${HOME}"}`
	for _, body := range []string{``, `, "json": {"args": "${args.all}"}`, `, "body": "${args.all}"`} {
		r := attempt(`{"url": "` + s.URL + `", "auth": {"bearer": "${secret:TOKEN}"}` + body + `}`)
		r.Task.Run.Args = `{"all": ` + all + `}`
		if _, err := x.Execute(t.Context(), r); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if sent := got()[len(got())-1].body; !strings.Contains(sent, all) {
			t.Errorf("%s: sent %s", body, sent)
		}
	}
}

// A column of a step that returned no row has no value, and is empty in a URL, wherever it stands.
func TestHTTPURLWithoutARow(t *testing.T) {
	s, got := receiver(t, nil)
	x := NewHTTP(loopback(map[string]string{"BASE": s.URL + "/"}))
	t.Cleanup(func() { x.Close() })
	for _, url := range []string{"${secret:BASE}${steps.ask.row.path}", "${secret:BASE}a${steps.ask.row.path}", s.URL + "/${steps.ask.row.path}"} {
		r := attempt(`{"url": "` + url + `"}`)
		r.Task.Job.Steps = []store.Step{{Name: "ask"}}
		r.Task.Steps = map[string]store.StepFacts{"ask": {State: store.Succeeded}}
		if _, err := x.Execute(t.Context(), r); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for i, want := range []string{"/", "/a", "/"} {
		if got()[i].uri != want {
			t.Errorf("request %d went to %s, want %s", i, got()[i].uri, want)
		}
	}
}
