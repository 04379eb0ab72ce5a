package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// FieldError says which field of which definition is wrong, and how.
type FieldError struct{ Subject, Field, Problem string }

func (e *FieldError) Error() string { return e.Subject + ": " + e.Field + ": " + e.Problem }

func orDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Normalize fills in the defaults, and leaves out blanks around the rule, which mean nothing.
func (c *Schedule) Normalize() {
	c.Rule = strings.TrimSpace(c.Rule)
	orDefault(&c.Zone, "UTC")
	orDefault(&c.Nonexistent, NonexistentForward)
	orDefault(&c.Ambiguous, AmbiguousFirst)
	if c.Calendar != "" {
		orDefault(&c.OnHoliday, HolidaySkip)
	}
}

// Normalize fills in the defaults of the policies, so that equal jobs are equal structs. It copies the job's lists
// before it changes them: other jobs may share them.
func (j *Job) Normalize() {
	j.Schedules, j.Steps = slices.Clone(j.Schedules), slices.Clone(j.Steps)
	for i := range policies {
		policies[i].normalize(j)
	}
	if j.Start = strings.TrimSpace(j.Start); j.Start != "" {
		orDefault(&j.StartZone, "UTC")
	}
	slices.Sort(j.Schedules)
	if j.Own != nil {
		own := *j.Own
		own.Normalize()
		own.Name, own.Manifest, own.Jobs, own.made, own.CreatedAt = "", "", 0, own.Made(), time.Time{}
		j.Own = &own
	}
	for i := range j.Steps {
		st := &j.Steps[i]
		orDefault(&st.Name, placeName(i+1))
		orDefault(&st.OnSuccess, StepNext)
		orDefault(&st.OnFailure, StepFail)
		st.Spec = st.form()
	}
}

// canonical writes equal JSON in one form: an engine may have reordered it, and have written its numbers in another way.
// Numbers keep all their digits.
func canonical(raw json.RawMessage) json.RawMessage {
	if isOrdered(raw) { // most specs are short and in this form already
		var out bytes.Buffer
		if json.Compact(&out, raw) == nil {
			return out.Bytes()
		}
	}
	return encodedAnew(raw)
}

func encodedAnew(raw json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(writtenOut(v)) != nil {
		return raw
	}
	return bytes.TrimSpace(out.Bytes())
}

// isOrdered reports whether JSON has its canonical form except for spaces: the keys of each object are in order, and
// no text or number could be written in another way. It may get text that is not JSON.
func isOrdered(raw []byte) bool {
	if bytes.IndexByte(raw, '\\') >= 0 || bytes.Contains(raw, []byte("\u2028")) || bytes.Contains(raw, []byte("\u2029")) || !utf8.Valid(raw) {
		return false
	}
	var last [][]byte // the previous keys of the open objects and lists
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '-', 'E': // a number with a sign may be 0
			return false
		case 'e':
			if i > 0 && raw[i-1] >= '0' && raw[i-1] <= '9' { // true and false have this letter, too
				return false
			}
		case '{', '[':
			last = append(last, nil)
		case '}', ']':
			last = last[:max(len(last)-1, 0)]
		case '"':
			n := bytes.IndexByte(raw[i+1:], '"')
			if n < 0 {
				return false
			}
			text := raw[i+1 : i+1+n]
			i += n + 1
			if !bytes.HasPrefix(bytes.TrimLeft(raw[i+1:], " \t\r\n"), []byte(":")) {
				continue
			}
			if len(last) == 0 || last[len(last)-1] != nil && bytes.Compare(last[len(last)-1], text) >= 0 {
				return false
			}
			last[len(last)-1] = text
		}
	}
	return true
}

// Or returns r, with the fields that r leaves empty taken from other.
func (r Retry) Or(other Retry) Retry {
	if r.Attempts == nil {
		r.Attempts = other.Attempts
	}
	if r.Backoff == nil {
		r.Backoff = other.Backoff
	}
	if r.MaxBackoff == nil {
		r.MaxBackoff = other.MaxBackoff
	}
	if r.Jitter == nil {
		r.Jitter = other.Jitter
	}
	return r
}

// maxName is the longest name, in bytes: the shortest limit of a key among the engines.
const maxName = 190

// checkName refuses names that an engine would store as another name, that could control a terminal, or that a command line
// takes for a flag: messages name commands to type, with the name in them.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("is empty")
	case !utf8.ValidString(name):
		return fmt.Errorf("%q is not UTF-8", name)
	case len(name) > maxName:
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(name), maxName)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%q begins or ends with a space", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%q holds a control character", name)
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("%q begins with a hyphen, as a flag of a command does", name)
	case strings.Contains(name, "/"):
		return fmt.Errorf("%q holds a slash, which separates owner and name", name)
	}
	return nil
}

func oneOf(v string, allowed ...string) error {
	if slices.Contains(allowed, v) {
		return nil
	}
	return fmt.Errorf("%q is not one of %s", v, strings.Join(allowed, ", "))
}

// Validate refuses values that not every engine can store. It does not read the rule: package rules does.
func (c *Schedule) Validate() error {
	return firstError("schedule "+c.Name,
		check{"name", checkName(c.Name)},
		check{"rule", cmp.Or(notEmpty(c.Rule), shortText(c.Rule, maxRule))},
		check{"zone", notEmpty(c.Zone)},
		check{"nonexistent", oneOf(c.Nonexistent, NonexistentForward, NonexistentSkip)},
		check{"ambiguous", oneOf(c.Ambiguous, AmbiguousFirst, AmbiguousLast, AmbiguousBoth)},
		check{"calendar", optionalName(c.Calendar)},
		check{"on_holiday", c.checkOnHoliday()},
		check{"description", checkDescription(c.Description)},
	)
}

func (c *Schedule) checkOnHoliday() error {
	if c.Calendar == "" && c.OnHoliday != "" {
		return fmt.Errorf("needs a calendar: name one")
	}
	if c.Calendar == "" {
		return nil
	}
	return oneOf(c.OnHoliday, HolidaySkip, HolidayNext, HolidayPrevious)
}

// Validate refuses a group whose jobs could never run.
func (g *Group) Validate() error {
	return firstError("group "+g.Name, check{"name", checkName(g.Name)}, check{"max_running", atLeast(g.MaxRunning, 1)})
}

type check struct {
	field string
	err   error
}

func firstError(subject string, checks ...check) error {
	for _, c := range checks {
		if c.err != nil {
			return &FieldError{subject, c.field, c.err.Error()}
		}
	}
	return nil
}

func notEmpty(s string) error {
	if strings.TrimSpace(s) == "" {
		return fmt.Errorf("is missing")
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return fmt.Errorf("is not UTF-8 text")
	}
	return nil
}

func atLeast(n, least int) error {
	if n < least {
		return fmt.Errorf("%d is below %d", n, least)
	}
	return nil
}

// CheckOwner refuses a text that cannot be the owner of a job.
func CheckOwner(name string) error { return checkName(name) }

func optionalName(s string) error {
	if s == "" {
		return nil
	}
	return checkName(s)
}

// CheckManifest refuses a text that cannot be the name of a manifest; empty: it has none.
func CheckManifest(name string) error { return optionalName(name) }

func duration(d Duration) error {
	if d < 0 || time.Duration(d) > longestWait {
		return fmt.Errorf("%s is not between 0 and 36500d", d)
	}
	return nil
}

// Validate refuses policies and steps that contradict each other or make no sense. The error names the
// field. Call Normalize first.
func (j *Job) Validate() error {
	subject := "job " + j.FullName()
	if j.Start != "" && !j.NotBefore.IsZero() {
		return &FieldError{subject, "start", "cannot be combined with not_before; remove one of them"}
	}
	if err := j.ValidatePolicies(); err != nil {
		return err
	}
	schedules := len(j.Schedules)
	if j.Own != nil {
		schedules++
	}
	if err := j.ValidateTimes(schedules); err != nil {
		return err
	}
	if err := firstError(subject, j.checkLengths(), check{"schedules", checkSchedules(j.Schedules)}, j.checkHeartbeat(), check{"steps", atLeast(len(j.Steps), 1)}); err != nil {
		return err
	}
	if err := j.validateSteps(subject); err != nil {
		return err
	}
	for i := range j.Steps { // no mistake for which a run could not succeed: see Mistake
		if err := firstError(subject+", step "+j.Steps[i].Name, check{"retry.max_backoff", j.Steps[i].Retry.contradiction()}); err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) validateSteps(subject string) error {
	names := map[string]bool{}
	for i := range j.Steps {
		if names[j.Steps[i].Name] {
			return &FieldError{subject, "steps", fmt.Sprintf("two steps are named %q", j.Steps[i].Name)}
		}
		names[j.Steps[i].Name] = true
	}
	for i := range j.Steps {
		st := &j.Steps[i]
		err := firstError(subject+", step "+st.Name,
			check{"name", checkName(st.Name)}, check{"executor", notEmpty(st.Executor)}, check{"timeout", duration(st.Timeout)}, check{st.Executor, st.checkSpec()}, check{st.Executor, j.checkReferences(i)},
			check{"on_success", follow(st.OnSuccess, names)}, check{"on_failure", follow(st.OnFailure, names)},
			check{"retry.attempts", j.EndsBeforeNext(st.Retry.Attempts)})
		if err != nil {
			return err
		}
	}
	if name := j.endless(); name != "" {
		return &FieldError{subject + ", step " + name, "on_success and on_failure", "no path from here leads to an end: the steps form a circle"}
	}
	return nil
}

// heartbeats is the check of a heartbeat. It returns the wrong key.
var heartbeats = func(Heartbeat) (key string, err error) { return "", nil }

// CheckHeartbeats registers the check of heartbeats, like KnowSpecs.
func CheckHeartbeats(check func(Heartbeat) (key string, err error)) { heartbeats = check }

// checkHeartbeat is not part of ValidatePolicies: no decision depends on it, and a job still runs if nobody receives
// its heartbeats.
func (j *Job) checkHeartbeat() check {
	if j.Heartbeat == (Heartbeat{}) {
		return check{}
	}
	key, err := heartbeats(j.Heartbeat)
	return check{"heartbeat." + key, err}
}

// endless returns the name of a step that a run can reach and from which it can never end, whatever
// happens.
func (j *Job) endless() string {
	onward, back := j.ways()
	comes, ends := reached(onward, 0), reached(back, len(j.Steps))
	for i := range j.Steps {
		if comes[i] && !ends[i] {
			return j.Steps[i].Name
		}
	}
	return ""
}

// leads reports whether a run can go from one step to another, or back to the same step.
func (j *Job) leads(from, to int) bool {
	onward, _ := j.ways()
	return slices.ContainsFunc(onward[from], func(next int) bool { return reached(onward, next)[to] })
}

// ways lists for each step the steps that may come next, and the steps from which a run may have come. The number of
// steps stands for the end.
func (j *Job) ways() (onward, back [][]int) {
	position := map[string]int{}
	for i := range j.Steps {
		position[StepNamed+j.Steps[i].Name] = i
	}
	after := func(i int, what string) int {
		switch to, ok := position[what]; {
		case ok:
			return to
		case what == StepNext:
			return i + 1
		}
		return len(j.Steps)
	}
	onward, back = make([][]int, len(j.Steps)+1), make([][]int, len(j.Steps)+1)
	for i := range j.Steps {
		for _, to := range []int{after(i, j.Steps[i].OnSuccess), after(i, j.Steps[i].OnFailure)} {
			onward[i], back[to] = append(onward[i], to), append(back[to], i)
		}
	}
	return onward, back
}

// reached reports which places can be reached from a place. ways lists the next places of each.
func reached(ways [][]int, from int) []bool {
	found, look := make([]bool, len(ways)), []int{from}
	found[from] = true
	for len(look) > 0 {
		at := look[len(look)-1]
		look = look[:len(look)-1]
		for _, to := range ways[at] {
			if !found[to] {
				found[to], look = true, append(look, to)
			}
		}
	}
	return found
}

// follow checks the value that says which step comes next.
func follow(v string, names map[string]bool) error {
	if name, ok := strings.CutPrefix(v, StepNamed); ok {
		if !names[name] {
			return fmt.Errorf("there is no step %q", name)
		}
		return shortText(v, maxName)
	}
	return oneOf(v, StepNext, StepSucceed, StepFail, StepNamed+"NAME")
}
