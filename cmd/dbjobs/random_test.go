package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// random makes definitions that may have each key of a job, a step, a schedule and a calendar, with texts that YAML has
// to put in quotes. It notes the keys that it used.
type random struct {
	*rand.Rand
	t      *testing.T
	logins bool // the engine has logins
	given  map[string]bool
}

// texts are hard to write in YAML, to store, or to tell apart from something else.
var texts = []string{"plain", "no", "Null", "~", "3", "3.50", "1e3", "0x1F", "2026-12-01", "12:30:00", "- a", "? a", "a: b", "a #b", "#a", "'", `"`, `\n \`, "{a: 1}", "[", "&a", "*a",
	"!a", "%a", "@a", "`a", "|", ">", "<<", "=", "${env:HOME}", "$${env:HOME}", "$${env:", "ünï 名前 🎉", "two\nlines", "  indented\n more\n", "ends with a line\n", "\nbegins with one",
	"tab\there", "return\r\nhere", "\u2028 \u0085 \ufeff", "trailing ", " leading", strings.Repeat("long ", 40), "a\n\n\nb", "\x01\x7f", "<<: *a", "--- a", "...", "%%", "a/b"}

var randomRules = []string{"every 5m", "*/7 * * * *", "0 0 31 * *", "30 2 * * MON-FRI", "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=3", "daily at 02:30", "@weekly", "~ ~ * * *", "at 2030-12-01T17:30:00"}

func (r *random) chance(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r *random, list ...T) T { return list[r.IntN(len(list))] }

// text returns any of them. line returns one that has no control character and no hyphen at its beginning, which names may not have.
func (r *random) text() string { return pick(r, texts...) + pick(r, "", "", pick(r, texts...)) }

func (r *random) line() string {
	for {
		s := pick(r, texts...)
		if !strings.ContainsAny(s, "\n\r\t\x01\x7f\u2028\u0085\ufeff/") && strings.TrimSpace(s) == s && !strings.HasPrefix(s, "-") {
			return s
		}
	}
}

func (r *random) name(i int) string { return fmt.Sprintf("%s %d", r.line(), i) }

// definitions makes calendars, schedules, groups and jobs that use them.
func (r *random) definitions(prefix string, jobs int) store.Definitions {
	var d store.Definitions
	for i := range 3 {
		d.Calendars = append(d.Calendars, r.calendar(prefix+r.name(i)))
	}
	for i := range 5 {
		d.Schedules = append(d.Schedules, r.schedule(prefix+r.name(i), &d))
		d.Groups = append(d.Groups, store.Group{Name: prefix + r.name(i), MaxRunning: 1 + r.IntN(9)})
	}
	for i := range jobs {
		d.Jobs = append(d.Jobs, r.job(prefix+r.name(i), &d))
	}
	return d
}

// some sets some of the keys of a definition, and notes them.
func (r *random) some(percent int, of string, keys map[string]func()) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if r.chance(percent) {
			keys[key]()
			r.given[of+" "+key] = true
		}
	}
}

// job makes a valid job: a policy that contradicts another one is removed.
func (r *random) job(name string, d *store.Definitions) store.Job {
	j := store.Job{Name: name}
	set := map[string]bool{}
	for _, p := range store.Policies() {
		if r.chance(25) {
			set[p.Key] = r.policy(&p, &j, d)
		}
	}
	for i := range 1 + r.IntN(3) {
		j.Steps = append(j.Steps, r.step(i))
	}
	for i := range j.Steps {
		r.ways(&j.Steps[i], i, j.Steps)
	}
	if r.chance(40) {
		own := r.schedule("", d)
		j.Own = &own
	}
	for _, s := range d.Schedules {
		if r.chance(15) {
			j.Schedules = append(j.Schedules, s.Name)
		}
	}
	for range 50 {
		tried := j
		tried.Normalize()
		err := errors.Join(tried.Validate(), tried.ValidateTimes(len(j.Schedules)+map[bool]int{true: 1}[j.Own != nil]))
		wrong, ok := errors.AsType[*store.FieldError](err)
		if !ok {
			if err != nil {
				r.t.Fatal(err)
			}
			for key, is := range set {
				r.given[key] = r.given[key] || is
			}
			return j
		}
		for _, p := range store.Policies() {
			if p.Key == wrong.Field || strings.HasPrefix(p.Key, wrong.Field+".") {
				set[p.Key] = false
				zero(p.Of(&j))
			}
		}
	}
	r.t.Fatalf("no job came of it: %v", j.Validate())
	return j
}

func zero(v any) {
	switch v := v.(type) {
	case *string:
		*v = ""
	case *[]string:
		*v = nil
	case *[]store.After:
		*v = nil
	case *int:
		*v = 0
	case *int64:
		*v = 0
	case *bool:
		*v = false
	case *time.Time:
		*v = time.Time{}
	case *store.Duration:
		*v = 0
	case **store.Duration:
		*v = nil
	case **store.Attempts:
		*v = nil
	case **int:
		*v = nil
	default:
		panic(fmt.Sprintf("%T", v))
	}
}

// policy gives a policy one of its allowed values.
func (r *random) policy(p *store.Policy, j *store.Job, d *store.Definitions) bool {
	length := func() store.Duration {
		return pick(r, store.Duration(1500*time.Millisecond), store.Duration(90*time.Second), store.Duration(36*time.Hour), store.Duration(30*24*time.Hour))
	}
	switch v := p.Of(j).(type) {
	case *string:
		*v = r.word(p, d)
		return *v != ""
	case *[]string:
		*v = []string{r.line(), r.line() + "x"}
	case *[]store.After:
		if len(d.Jobs) == 0 {
			return false
		}
		*v = []store.After{{Job: pick(r, d.Jobs...).Name, On: pick(r, store.Ends()...)}}
	case *int:
		*v = max(int(p.Least), 1) + r.IntN(50)
	case *int64:
		*v = max(p.Least, 1) + r.Int64N(1<<40)
	case *bool:
		*v = true
	case *time.Time:
		*v = time.Date(2032+r.IntN(5), 3, 4, 5, 6, 7, pick(r, 0, 250_000_000, 1000), time.UTC)
	case *store.Duration:
		*v = length()
	case **store.Duration:
		n := length()
		*v = &n
	case **store.Attempts:
		n := pick(r, store.Attempts(0), 1, 7, 1000)
		*v = &n
	case **int:
		n := r.IntN(101)
		*v = &n
	}
	return true
}

// word returns a text that a policy may have. It is empty if there is none here.
func (r *random) word(p *store.Policy, d *store.Definitions) string {
	section, _, _ := strings.Cut(p.Key, ".")
	switch {
	case p.Allowed != nil:
		return pick(r, p.Allowed...)
	case p.Key == "description":
		return r.text()
	case p.Key == "owner" && !r.logins:
		return ""
	case p.Key == "group":
		return pick(r, d.Groups...).Name
	case p.Key == "start":
		return pick(r, "D 17:30", "at 2031-12-01T17:30:00")
	case p.Key == "start_zone":
		return pick(r, "UTC", "Asia/Tokyo")
	case section == "on" && len(d.Jobs) > 0:
		return pick(r, store.NoHook, d.Jobs[0].Name)
	case section == "on":
		return store.NoHook
	case section == "heartbeat":
		return pick(r, "https://example.org/${job}", "https://example.org/${secret:PING}")
	}
	return r.line()
}

// step makes a step of any executor.
func (r *random) step(i int) store.Step {
	s := store.Step{Name: fmt.Sprintf("step %d", i+1)}
	if r.chance(40) {
		s.Name = r.name(i)
	}
	kind := pick(r, executor.Kinds...)
	for range 1000 {
		given := map[string]bool{}
		spec, err := kind.Spec(r.values(kind.Keys, "", given))
		if err != nil || kind.Check(spec) != nil {
			continue
		}
		for key := range given {
			r.given["step "+key] = true
		}
		s.Executor, s.Spec = kind.Name, spec
		return s
	}
	r.t.Fatalf("no step of %s came of it", kind.Name)
	return s
}

// ways sets the keys of a step that all executors have.
func (r *random) ways(s *store.Step, i int, all []store.Step) {
	next := []string{store.StepNext, store.StepSucceed, store.StepFail}
	for _, later := range all[i+1:] {
		next = append(next, store.StepNamed+later.Name)
	}
	var j store.Job
	for _, p := range store.Policies() {
		if strings.HasPrefix(p.Key, "retry.") && r.chance(20) {
			r.policy(&p, &j, nil)
			r.given["step "+p.Key] = true
		}
	}
	if b, most := j.Retry.Backoff, j.Retry.MaxBackoff; b != nil && most != nil && *most < *b {
		*most = *b
	}
	if s.Retry = j.Retry; s.Retry.Attempts != nil && *s.Retry.Attempts == 0 {
		*s.Retry.Attempts = 2 // until-next needs a next time
	}
	keys := map[string]func(){
		"timeout":    func() { s.Timeout = store.Duration(time.Minute) },
		"on_success": func() { s.OnSuccess = pick(r, next...) },
		"on_failure": func() { s.OnFailure = pick(r, next...) },
	}
	r.some(30, "step", keys)
}

// values are the values of some of the keys.
func (r *random) values(keys []executor.Key, path string, given map[string]bool) map[string]any {
	all := map[string]any{}
	for i, key := range keys {
		if whole := path + key.Name; i == 0 || r.chance(35) {
			if v := r.value(key, whole, given); v != nil {
				all[key.Name], given[whole] = v, true
			}
		}
	}
	if strings.HasSuffix(path, "auth.") && len(all) > 1 { // only one way is allowed
		delete(all, "bearer")
		delete(given, path+"bearer")
	}
	return all
}

func (r *random) value(key executor.Key, path string, given map[string]bool) any {
	if special := map[string]func() any{
		"fail_if": func() any { return pick(r, "rows", "no-rows") },
		"http.url": func() any {
			return pick(r, "https://example.org/a?b=${job}#c", "https://example.org/"+r.line(), "${secret:HOOK}")
		},
		"http.method":          func() any { return pick(r, "GET", "PUT", "POST", "DELETE") },
		"http.headers":         func() any { return map[string]string{"X-A": r.line(), "Accept": "3"} },
		"http.expect":          func() any { return pick(r, []string{"200"}, []string{"2xx", "404"}) },
		"http.secret":          func() any { return pick(r, []string{"${secret:A}"}, []string{"${secret:A}", "${secret:B}"}) },
		"http.auth.bearer":     func() any { return "${secret:TOKEN}" },
		"http.auth.basic.user": func() any { return r.line() }, "http.auth.basic.password": func() any { return "${secret:P}" },
		"http.auth.aws.service": func() any { return "sqs" }, "http.auth.aws.region": func() any { return "eu-central-1" },
		"http.auth.gcp.token": func() any { return pick(r, "access", "identity") }, "http.auth.gcp.audience": func() any { return "https://b.run.app" },
		"mail.to": func() any { return pick(r, []string{"a@example.org"}, []string{"a@example.org", "B <b@example.org>"}) },
		"mail.cc": func() any { return []string{"c@example.org"} }, "mail.subject": func() any { return r.line() },
		"exec.run": func() any { return pick(r, []string{"/bin/true"}, []string{"/bin/echo", r.text(), r.text()}) },
		"exec.dir": func() any { return "/srv" }, "shell.dir": func() any { return "/srv/" + r.line() },
		"exec.env": func() any { return map[string]string{"A": r.text(), "B": "3"} }, "shell.env": func() any { return map[string]string{"A": r.text()} },
		"exec.grace": func() any { return "30s" }, "shell.grace": func() any { return "1m" },
		"exec.retry_exit": func() any { return []string{"7", "28"} }, "shell.retry_exit": func() any { return []string{"7"} },
		"exec.skip_exit": func() any { return []string{"99"} }, "shell.skip_exit": func() any { return []string{"98", "99"} },
	}[path]; special != nil {
		return special()
	}
	switch key.Type {
	case executor.Switch:
		return true
	case executor.Text, executor.TargetName:
		return r.text()
	case executor.Arguments:
		return []any{r.text(), json.Number("1.50"), true, nil, "${scheduled_for}"}
	case executor.Statements:
		return pick(r, executor.Texts("SELECT '"+strings.TrimSpace(r.text())+"'"), executor.Texts("SELECT 1", "SELECT 2\nFROM a"),
			[]executor.Statement{{Text: "SELECT ?", Args: []any{r.text(), json.Number("3")}}, {Text: "SELECT 1"}})
	case executor.List:
		return []string{r.text(), r.text()}
	case executor.Pairs:
		return map[string]string{r.line(): r.text()}
	case executor.JSON:
		return pick[any](r, r.text(), false, json.Number("0.10"), map[string]any{r.line(): []any{nil, r.text()}}, []any{})
	case executor.Mapping:
		return r.values(key.Keys, path+".", given)
	}
	return nil
}

// missing returns the keys of the grammar that were never used.
func (r *random) missing() (list []string) {
	for _, p := range store.Policies() {
		if !r.given[p.Key] && (p.Key != "owner" || r.logins) {
			list = append(list, p.Key)
		}
	}
	var keys func(list []executor.Key, path string) []string
	keys = func(list []executor.Key, path string) (all []string) {
		for _, k := range list {
			all = append(append(all, "step "+path+k.Name), keys(k.Keys, path+k.Name+".")...)
		}
		return all
	}
	all := append(r.written(), "step timeout", "step on_success", "step on_failure", "step retry.attempts", "step retry.backoff", "step retry.max_backoff", "step retry.jitter")
	for _, k := range executor.Kinds {
		all = append(all, keys(k.Keys, "")...)
	}
	return append(list, slices.DeleteFunc(all, func(key string) bool { return r.given[key] })...)
}
