// Package webpage writes the report as one HTML file: what ran, what failed, what comes next.
//
// The file loads nothing from the network. It contains its style, its program and, as JSON, its facts. The policy
// in its head (Content-Security-Policy) lets a browser use only these. So it can be opened from a folder or from
// an object store. There is no framework and no build step: page.html, page.css and the files of the program are
// in the page as they are in the repository.
//
// Texts from a database are hostile. In the file, they are JSON in which no character can end the element, and the
// program only ever writes them as text. Characters that could control a terminal, or turn the direction of a
// line, are written as escapes, as in all other output.
package webpage

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"
)

// Facts are all that the page shows. Instants are milliseconds since 1970; 0: there is none.
type Facts struct {
	Made     int64  `json:"made"`     // by the clock of the database
	From     int64  `json:"from"`     // of the runs
	Until    int64  `json:"until"`    // of the calendar
	Version  string `json:"version"`  // of the program
	Database string `json:"database"` // without password
	Chosen   bool   `json:"chosen"`   // the user asked for only some jobs
	// Cut names what is left out because there is more of it than a page may have.
	Cut      []string  `json:"cut"`
	Jobs     []Job     `json:"jobs"`
	Runs     Runs      `json:"runs"`
	Gaps     []Gap     `json:"gaps"`
	Silences []Silence `json:"silences"`
	Triggers []Trigger `json:"triggers"`
	// Attention is what needs attention and is not among the jobs, the triggers and their silences.
	Attention []Attention `json:"attention"`
	// Hidden says that row security hides the ticks of other logins: that there is no trigger says nothing then.
	Hidden bool `json:"hidden,omitempty"`
}

// Job is a job with its coming times. A run may belong to a job that was removed.
type Job struct {
	Name     string  `json:"name"`
	State    string  `json:"state"` // removed, or a state of job list
	Schedule string  `json:"schedule"`
	Why      string  `json:"why,omitempty"`    // why it is paused
	Parked   string  `json:"parked,omitempty"` // why it is parked; it needs attention like Failing
	Itself   bool    `json:"itself,omitempty"` // it has paused itself, and needs attention like Failing
	Error    string  `json:"error,omitempty"`
	Streak   int     `json:"streak,omitempty"`  // failures in a row
	Failing  bool    `json:"failing,omitempty"` // they need attention: the job is not disabled, and nobody has paused it
	Overdue  int64   `json:"overdue,omitempty"` // since that instant
	Next     int64   `json:"next,omitempty"`
	Ahead    []int64 `json:"ahead"`          // its next nominal times
	More     bool    `json:"more,omitempty"` // the calendar's time has more of them
}

// Runs are the runs, the newest first, as one list for each fact, so that a page of ten thousand runs stays small.
type Runs struct {
	Job     []int    `json:"job"`   // index of Jobs
	State   []int    `json:"state"` // index of States
	ID      []string `json:"id"`
	Nominal []int64  `json:"nominal"`
	Made    []int64  `json:"made"`
	Started []int64  `json:"started"`
	Ended   []int64  `json:"ended"`
	Origin  []int    `json:"origin"` // index of Origins
	Error   []int    `json:"error"`  // index of Errors; -1: none
	States  []string `json:"states"`
	Origins []string `json:"origins"` // of runs without a nominal time, such as "on request"; else empty
	Errors  []string `json:"errors"`

	errors map[string]int
}

// Gap is a record of nominal times that have no run.
type Gap struct {
	Job     int    `json:"job"`
	From    int64  `json:"from"`
	Through int64  `json:"through"`
	Reason  string `json:"reason"`
}

// Silence is a time in which a trigger started no tick. To is 0 while it lasts.
type Silence struct {
	Trigger string `json:"trigger"`
	From    int64  `json:"from"`
	To      int64  `json:"to"`
}

// Trigger is what starts ticks.
type Trigger struct {
	Name  string `json:"name"`
	Last  int64  `json:"last"`
	Error string `json:"error,omitempty"` // why its last tick has failed
}

// Attention is one thing to look at.
type Attention struct {
	Kind string `json:"kind"` // such as stuck
	Text string `json:"text"`
}

// Millis returns an instant in the form of the page.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Add appends a run.
func (r *Runs) Add(job int, state, id, origin, problem string, nominal, made, started, ended time.Time) {
	r.Job, r.ID = append(r.Job, job), append(r.ID, id)
	r.State, r.Origin = append(r.State, place(&r.States, state)), append(r.Origin, place(&r.Origins, origin))
	r.Nominal, r.Made = append(r.Nominal, Millis(nominal)), append(r.Made, Millis(made))
	r.Started, r.Ended = append(r.Started, Millis(started)), append(r.Ended, Millis(ended))
	n, known := r.errors[problem]
	switch {
	case problem == "":
		n = -1
	case !known:
		if r.errors == nil {
			r.errors = map[string]int{}
		}
		n = len(r.Errors)
		r.Errors, r.errors[problem] = append(r.Errors, problem), n
	}
	r.Error = append(r.Error, n)
}

// place returns the index of a word in a short list, and appends it if it is not there.
func place(list *[]string, word string) int {
	i := slices.Index(*list, word)
	if i < 0 {
		i, *list = len(*list), append(*list, word)
	}
	return i
}

// The parts of the file. The program is in several files for its readers, and is one script in the browser.
//
//go:embed page.html page.css data.js timeline.js calendar.js main.js
var files embed.FS

var program = []string{"data.js", "timeline.js", "calendar.js", "main.js"}

// Write writes the page.
func Write(w io.Writer, f *Facts) error {
	// json.Marshal writes <, >, & and the line ends U+2028 and U+2029 as escapes, and bytes that are not UTF-8 as
	// U+FFFD. So nothing in a text can end the element.
	if f.Runs.ID == nil { // a list is [], never null
		f.Runs = Runs{[]int{}, []int{}, []string{}, []int64{}, []int64{}, []int64{}, []int64{}, []int{}, []int{}, []string{}, []string{}, []string{}, nil}
	}
	if f.Runs.Errors == nil {
		f.Runs.Errors = []string{}
	}
	if f.Attention == nil {
		f.Attention = []Attention{}
	}
	facts, err := json.Marshal(f)
	if err != nil {
		return err
	}
	style := part("page.css")
	var script bytes.Buffer
	script.WriteString("(() => {\n\"use strict\";\n")
	for _, name := range program {
		script.Write(part(name))
	}
	script.WriteString("})();\n")
	frame, rest, _ := strings.Cut(string(part("page.html")), "{{style}}")
	body, rest, _ := strings.Cut(rest, "{{facts}}")
	end, tail, _ := strings.Cut(rest, "{{program}}")
	policy := "default-src 'none'; style-src " + source(style) + "; script-src " + source(script.Bytes()) +
		"; img-src data:; base-uri 'none'; form-action 'none'"
	for _, text := range [][]byte{[]byte(strings.Replace(frame, "{{policy}}", policy, 1)), style, []byte(body), facts, []byte(end), script.Bytes(), []byte(tail)} {
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

func part(name string) []byte {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the template is linked in
	}
	return text
}

// source returns the hash of a script or a style, by which the policy names it.
func source(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
