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

// A column of a step that returned no row has no value, and is empty in a URL. Where it is a whole part of the path, the request is
// not sent: it would address something else, such as the collection in place of the one thing in it.
func TestHTTPURLWithoutARow(t *testing.T) {
	s, got := receiver(t, nil)
	h := loopback(map[string]string{"BASE": s.URL + "/", "QUERY": s.URL + "/?a/"})
	x := NewHTTP(h)
	t.Cleanup(func() { x.Close() })
	const none, another = "${steps.ask.row.a/b?}", "would lead to another path" // a column may have any name
	for url, want := range map[string]string{
		"URL/x-" + none:                       "/x-",
		"URL/x?id=" + none + "&at=/" + none:   "/x?id=&at=/",
		"URL/x/?${args.dots}":                 "/x/?..",
		"URL/x${args.dots}":                   "/x..",
		"URL#" + none:                         "/",
		"${secret:BASE}x" + none:              "/x",
		"${secret:QUERY}" + none:              "/?a/",
		"URL/x/" + none:                       none + " is empty, which " + another,
		"URL/x/" + none + "?all=1":            another,
		"URL/x/" + none + "#all":              another,
		"URL/" + none + "/x":                  another,
		"URL/" + none + none:                  none + none + " is empty, which " + another,
		"URL/${args.empty}":                   another,
		"URL/.${args.dot}/x":                  "${args.dot} makes the part .. of the path, which " + another,
		"URL/${args.day}/${args.dots}":        "${args.dots} makes the part .. of the path, which " + another,
		"${secret:BASE}" + none:               another,
		"${secret:BASE}x/" + none + "/${job}": another,
	} {
		r := attempt(`{"url": "` + strings.ReplaceAll(url, "URL", s.URL) + `"}`)
		r.Task.Run.Args = `{"empty": "", "dot": ".", "dots": "..", "day": "a/b"}`
		r.Task.Job.Steps = []store.Step{{Name: "ask"}}
		r.Task.Steps = map[string]store.StepFacts{"ask": {State: store.Succeeded}}
		before := len(got())
		switch _, err := x.Execute(t.Context(), r); {
		case strings.HasSuffix(want, another):
			if err == nil || !strings.Contains(err.Error(), want) || len(got()) > before {
				t.Errorf("%s: %v, and %d requests, want %s", url, err, len(got())-before, want)
			}
		case err != nil:
			t.Errorf("%s: %v", url, err)
		case got()[before].uri != want:
			t.Errorf("%s went to %s, want %s", url, got()[before].uri, want)
		}
	}
	if err := tell(t, t.Context(), h, Heartbeat{Success: s.URL + "/${message}"}, Success, ""); err == nil || !strings.Contains(err.Error(), another) {
		t.Errorf("a heartbeat: %v, want that it %s", err, another)
	}
}
