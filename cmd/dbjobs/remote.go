package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// allowVariable names the commands, besides tick and work, that an event of the function may ask for. The platform
// decides who may invoke a function, and that may be other people than the owner of the database. So only commands
// that are named here are allowed.
const allowVariable = "DBJOBS_LAMBDA_ALLOW"

// order is the command that an event asks for.
type order interface {
	// answer makes the answer from the output of the command, and the lines about what it left out.
	answer(printed []byte, left []string) []byte
}

// remote is an order that is no pass: a command line, and the input for it. request is the platform's id of the event. It
// is the same each time that the platform delivers the event.
type remote interface {
	order
	line(request string) (args []string, stdin string, err error)
}

// remotes has the commands for callers who reach the function, but not the database.
var remotes = map[string]func() remote{
	"migrate": func() remote { return &migrateOrder{} },
	"apply":   func() remote { return &applyOrder{} },
	"export":  func() remote { return &exportOrder{} },
	"status":  func() remote { return &statusOrder{} },
	"check":   func() remote { return &checkOrder{} },
	"run-now": func() remote { return &runNowOrder{} },
}

// named is the member that each event may have.
type named struct {
	Command string `json:"command"`
}

// asJSON is the order of a command that prints JSON.
type asJSON struct{ named }

func (asJSON) answer(text []byte, _ []string) []byte { return text }

func (event) answer(text []byte, _ []string) []byte { return text }

// readEvent reads an event. It is strict, because a mistyped member must not be ignored silently.
func (s *service) readEvent(payload []byte) (order, error) {
	tick := event{Command: "tick"}
	if payload = bytes.TrimSpace(payload); len(payload) == 0 {
		return tick, nil
	}
	var asked struct {
		named
		Kind *string `json:"detail-type"`
	}
	if json.Unmarshal(payload, &asked) == nil && asked.Kind != nil { // an event of EventBridge
		return tick, nil
	}
	command := asked.Command
	if order, ok := remotes[command]; ok {
		if err := s.allowed(command); err != nil {
			return nil, err
		}
		o := order()
		return o, decodeEvent(payload, o, "see what "+command+" takes in the page of the program, under AWS Lambda")
	}
	if err := decodeEvent(payload, &tick, `want {"command": "tick" or "work", "limit": NUMBER, "queue": NAME}, where each member is optional`); err != nil {
		return nil, err
	}
	if tick.Command != "tick" && tick.Command != "work" {
		return nil, badInput("event: unknown command %s; want tick, work, %s", shown(tick.Command), strings.Join(slices.Sorted(maps.Keys(remotes)), ", "))
	}
	return tick, nil
}

// decodeEvent decodes an event. It refuses members that it does not know.
func decodeEvent(payload []byte, into any, want string) error {
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return badInput("event: %v; %s", err, want)
	}
	return nil
}

// allowed refuses a command that the host has not named. It also finds a wrong name in the setting. A tick does
// not check that: a mistake in this setting must not stop jobs.
func (s *service) allowed(command string) error {
	text, _ := s.env(allowVariable)
	names := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range names {
		if remotes[name] == nil {
			return badInput("%s: unknown command %s; want names of %s, with commas", allowVariable, shown(name), strings.Join(slices.Sorted(maps.Keys(remotes)), ", "))
		}
	}
	if !slices.Contains(names, command) {
		return badInput("event: %s is not allowed here; add it to %s, if every caller of this function may do that to the database", command, allowVariable)
	}
	return nil
}

type migrateOrder struct{ asJSON }

func (*migrateOrder) line(string) ([]string, string, error) {
	return []string{"migrate", "--json"}, "", nil
}

// applyOrder applies a manifest: its text, or the manifest itself as JSON, or an object in a bucket.
type applyOrder struct {
	asJSON
	Manifest json.RawMessage `json:"manifest"`
	From     string          `json:"from"`
	DryRun   bool            `json:"dry_run"`
	Prune    bool            `json:"prune"`
	By       string          `json:"by"`
	Reason   string          `json:"reason"`
}

func (o *applyOrder) line(string) ([]string, string, error) {
	from, text := o.From, ""
	manifest := bytes.TrimSpace(o.Manifest)
	switch none := len(manifest) == 0 || bytes.Equal(manifest, []byte("null")); {
	case none == (from == ""):
		return nil, "", badInput("event: apply needs a manifest: its text, or the same as JSON; or, as from, the s3:// or gs:// URL of one")
	case none:
	case json.Unmarshal(manifest, &text) != nil:
		text = string(manifest) // a manifest may be JSON
	}
	args := authorship([]string{"apply", "--json", "--file=" + cmp.Or(from, "-")}, o.By, o.Reason)
	if o.DryRun {
		args = append(args, "--dry-run")
	}
	if o.Prune {
		args = append(args, "--prune")
	}
	return args, text, nil
}

// exportOrder answers with a member that has the form in which apply takes it.
type exportOrder struct {
	named
	Manifest *string `json:"manifest"`
	All      bool    `json:"all"`
}

func (o *exportOrder) line(string) ([]string, string, error) {
	args := []string{"export"}
	if o.Manifest != nil {
		args = append(args, "--manifest="+*o.Manifest)
	}
	if o.All {
		args = append(args, "--all")
	}
	return args, "", nil
}

func (*exportOrder) answer(text []byte, left []string) []byte {
	for i, line := range left {
		left[i] = strings.TrimPrefix(line, errLeftOut.Error()+": ")
	}
	answer, _ := json.Marshal(struct { // texts are no obstacle to JSON
		Manifest string   `json:"manifest"`
		LeftOut  []string `json:"left_out,omitempty"`
	}{string(text), left})
	return answer
}

type statusOrder struct {
	asJSON
	Limit *int `json:"limit"`
}

func (o *statusOrder) line(string) ([]string, string, error) {
	args := []string{"status", "--json"}
	if o.Limit != nil {
		args = append(args, "--limit", strconv.Itoa(*o.Limit))
	}
	return args, "", nil
}

// checkOrder is for a monitor: the answer contains the level, even if the database could not be asked.
type checkOrder struct {
	asJSON
	LastPass string `json:"last_pass"`
	Overdue  string `json:"overdue"`
	Stuck    string `json:"stuck"`
	Running  string `json:"running"`
	Trigger  string `json:"trigger"`
}

func (o *checkOrder) line(string) ([]string, string, error) {
	args := []string{"check", "--json"}
	for _, f := range [][2]string{{"last-pass", o.LastPass}, {"overdue", o.Overdue}, {"stuck", o.Stuck}, {"running", o.Running}, {"trigger", o.Trigger}} {
		if f[1] != "" {
			args = append(args, "--"+f[0]+"="+f[1])
		}
	}
	return args, "", nil
}

type runNowOrder struct {
	asJSON
	Job    string            `json:"job"`
	Args   map[string]string `json:"args"`
	Step   string            `json:"from_step"`
	Key    string            `json:"key"`
	By     string            `json:"by"`
	Reason string            `json:"reason"`
}

// line has a key in any case. Otherwise an event that is delivered again would make another run.
func (o *runNowOrder) line(request string) ([]string, string, error) {
	if o.Job == "" {
		return nil, "", badInput("event: run-now needs the name of a job")
	}
	args := authorship([]string{"job", "run-now", "--json"}, o.By, o.Reason)
	for _, name := range slices.Sorted(maps.Keys(o.Args)) {
		args = append(args, "--arg="+name+"="+o.Args[name])
	}
	if o.Step != "" {
		args = append(args, "--from-step="+o.Step)
	}
	if key := cmp.Or(o.Key, request); key != "" {
		args = append(args, "--key="+key)
	}
	return append(args, "--", o.Job), "", nil
}

// authorship adds the author and the reason for the change log.
func authorship(args []string, by, reason string) []string {
	if by != "" {
		args = append(args, "--by="+by)
	}
	if reason != "" {
		args = append(args, "--reason="+reason)
	}
	return args
}
