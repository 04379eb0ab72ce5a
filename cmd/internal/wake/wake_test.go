package wake

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

const (
	functionARN = "arn:aws:lambda:eu-central-1:123456789012:function:dbjobs:live"
	roleARN     = "arn:aws:iam::123456789012:role/dbjobs-wake"
	queue       = "projects/p-1/locations/europe-west3/queues/dbjobs"
)

// fakeCloud answers like the API of EventBridge Scheduler (2021-06-30) or of Cloud Tasks (v2). It follows their
// published models: the required and accepted fields, the names that may be used twice, and the refusals.
type fakeCloud struct {
	*httptest.Server
	t       *testing.T
	mu      sync.Mutex
	alarms  map[string]time.Time // by name
	rung    map[string]bool      // Cloud Tasks keeps these names
	calls   []string             // the requests that alarms have sent
	fail    []int                // statuses of the next answers
	asked   int
	refused string // what was wrong with a request

	deadLetters []string      // the queues that alarms named
	tries, age  int           // of the last schedule
	waits       time.Duration // how long the last task waits for its answer
}

func (p *fakeCloud) refuse(w http.ResponseWriter, status int, name, format string, args ...any) {
	if status == http.StatusBadRequest || status == http.StatusForbidden {
		p.refused = fmt.Sprintf(format, args...)
	}
	w.Header().Set("X-Amzn-ErrorType", name)
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"Message": %q, "error": {"status": %q}}`, fmt.Sprintf(format, args...)+" Bearer geheim", name)
}

// failing answers with the next of the failures that the test has ordered.
func (p *fakeCloud) failing(w http.ResponseWriter) bool {
	if p.asked++; len(p.fail) == 0 {
		return false
	}
	status := p.fail[0]
	p.fail = p.fail[1:]
	p.refuse(w, status, map[int]string{429: "ThrottlingException", 403: "AccessDeniedException"}[status], "as it should")
	return true
}

var (
	atExpression = regexp.MustCompile(`^at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)$`)
	awsNames     = regexp.MustCompile(`^[0-9a-zA-Z-_.]{1,64}$`)
	tokens       = regexp.MustCompile(`^[a-zA-Z0-9-_]{1,64}$`)
	authorized   = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=AKID/20261124/eu-central-1/scheduler/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}$`)
)

// createSchedule answers CreateSchedule: POST /schedules/{Name}.
func (p *fakeCloud) createSchedule(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failing(w) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	again := http.Header{"Content-Type": r.Header["Content-Type"]}
	aws.Sign(again, r.Method, &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path}, body, aws.Credentials{KeyID: "AKID", Secret: "geheim", SessionToken: "token"}, "eu-central-1", "scheduler", noon)
	if a := r.Header.Get("Authorization"); !authorized.MatchString(a) || a != again.Get("Authorization") {
		p.refuse(w, http.StatusForbidden, "InvalidSignatureException", "signature: %s", a)
		return
	}
	var s struct {
		ActionAfterCompletion, ClientToken, Description, GroupName, ScheduleExpression, ScheduleExpressionTimezone string
		FlexibleTimeWindow                                                                                         struct{ Mode string }
		Target                                                                                                     struct {
			Arn, RoleArn, Input string
			RetryPolicy         struct{ MaximumEventAgeInSeconds, MaximumRetryAttempts int }
			DeadLetterConfig    *struct{ Arn string }
		}
	}
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	name := r.PathValue("name")
	err := dec.Decode(&s)
	m := atExpression.FindStringSubmatch(s.ScheduleExpression)
	var at time.Time
	if m != nil {
		at, err = time.Parse("2006-01-02T15:04:05", m[1])
	}
	p.tries, p.age = s.Target.RetryPolicy.MaximumRetryAttempts, s.Target.RetryPolicy.MaximumEventAgeInSeconds
	if s.Target.DeadLetterConfig != nil {
		p.deadLetters = append(p.deadLetters, s.Target.DeadLetterConfig.Arn)
	}
	switch age := s.Target.RetryPolicy.MaximumEventAgeInSeconds; {
	case err != nil, m == nil, !awsNames.MatchString(name), !tokens.MatchString(s.ClientToken), s.FlexibleTimeWindow.Mode != "OFF", s.ActionAfterCompletion != "DELETE",
		s.ScheduleExpressionTimezone != "UTC", len(s.Description) > 512, s.Target.Arn != functionARN, s.Target.RoleArn != roleARN, !json.Valid([]byte(s.Target.Input)),
		age < 60 || age > 86400, s.Target.RetryPolicy.MaximumRetryAttempts > 185:
		p.refuse(w, http.StatusBadRequest, "ValidationException", "%v %s", err, body)
	case s.GroupName != "default":
		p.refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Schedule group %s does not exist.", s.GroupName)
	case !p.alarms[name].IsZero():
		p.refuse(w, http.StatusConflict, "ConflictException", "Schedule %s already exists.", name)
	default:
		p.alarms[name] = at
		_, _ = fmt.Fprintf(w, `{"ScheduleArn": "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/%s"}`, name)
	}
}

var taskNames = regexp.MustCompile(`^` + queue + `/tasks/[A-Za-z0-9_-]{1,500}$`)

// createTask answers CreateTask: POST /v2/{parent=projects/*/locations/*/queues/*}/tasks.
func (p *fakeCloud) createTask(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failing(w) {
		return
	}
	var b struct {
		Task struct {
			Name             string    `json:"name"`
			ScheduleTime     time.Time `json:"scheduleTime"`
			DispatchDeadline string    `json:"dispatchDeadline"`
			HTTPRequest      struct {
				URL         string `json:"url"`
				HTTPMethod  string `json:"httpMethod"`
				OIDC, OAuth *struct {
					Account  string `json:"serviceAccountEmail"`
					Audience string `json:"audience"`
				}
			} `json:"httpRequest"`
		} `json:"task"`
	}
	body, _ := io.ReadAll(r.Body)
	text := strings.NewReplacer(`"oidcToken"`, `"OIDC"`, `"oauthToken"`, `"OAuth"`).Replace(string(body))
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(&b)
	call := b.Task.HTTPRequest
	deadline, wrong := time.ParseDuration(cmp.Or(b.Task.DispatchDeadline, "10m"))
	switch {
	case r.Header.Get("Authorization") != "Bearer ya29.t0ken":
		p.refuse(w, http.StatusUnauthorized, "UNAUTHENTICATED", "no token")
	case err != nil, !taskNames.MatchString(b.Task.Name), call.HTTPMethod != "POST", (call.OIDC == nil) == (call.OAuth == nil),
		b.Task.ScheduleTime.After(noon.Add(30 * 24 * time.Hour)), wrong != nil, b.Task.DispatchDeadline != "" && !strings.HasSuffix(b.Task.DispatchDeadline, "s"), deadline < 15*time.Second, deadline > 30*time.Minute:
		p.refuse(w, http.StatusBadRequest, "INVALID_ARGUMENT", "%v %s", err, body)
	case !p.alarms[b.Task.Name].IsZero(), p.rung[b.Task.Name]:
		p.refuse(w, http.StatusConflict, "ALREADY_EXISTS", "The task cannot be created because a task with this name existed too recently.")
	default:
		p.alarms[b.Task.Name], p.waits = b.Task.ScheduleTime, deadline
		_, _ = fmt.Fprint(w, "{}")
	}
}

// ring sends the requests of the alarms up to an instant, and forgets the alarms.
func (p *fakeCloud) ring(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, at := range p.alarms {
		if !at.After(until) {
			delete(p.alarms, name)
			p.rung[name] = true
			p.calls = append(p.calls, at.Format(time.RFC3339))
		}
	}
	slices.Sort(p.calls)
}

// start makes a platform, and an alarm that is set there, of the given kind.
func start(t *testing.T, kind string, vars map[string]string) (*fakeCloud, tick.Alarm) {
	t.Helper()
	p := &fakeCloud{t: t, alarms: map[string]time.Time{}, rung: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /schedules/{name}", p.createSchedule)
	mux.HandleFunc("POST /v2/"+queue+"/tasks", p.createTask)
	mux.HandleFunc("GET /computeMetadata/v1/instance/service-accounts/default/token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", cmp.Or(r.Header.Get("Metadata-Flavor"), "none"))
		_, _ = fmt.Fprint(w, `{"access_token":"ya29.t0ken"}`)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	all := map[string]string{endpointVariable: p.URL, "GCE_METADATA_HOST": p.Listener.Addr().String(),
		"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "geheim", "AWS_SESSION_TOKEN": "token"}
	for name, value := range vars {
		all[name] = value
	}
	a, err := New(kind, Settings{Env: lookup(all), Environ: os.Environ(), Secrets: &secret.Known{}, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return p, a
}

func lookup(vars map[string]string) Lookup {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

var clouds = map[string]map[string]string{
	"aws-scheduler":      {targetVariable: functionARN, roleVariable: roleARN},
	"gcp-tasks:" + queue: {targetVariable: "https://dbjobs-x7k.a.run.app/tick", roleVariable: "caller@p-1.iam.gserviceaccount.com"},
}

// An alarm is set once, however many ticks set it. An earlier alarm is set in addition to a later one, and both ring.
func TestAlarmsOfClouds(t *testing.T) {
	for kind, vars := range clouds {
		t.Run(strings.SplitN(kind, ":", 2)[0], func(t *testing.T) {
			p, a := start(t, kind, vars)
			set := func(at time.Time) time.Time {
				t.Helper()
				rings, err := a.Set(t.Context(), at)
				if err != nil {
					t.Fatalf("%v; %s", err, p.refused)
				}
				if rings.Before(at) {
					t.Errorf("the alarm for %s rings at %s", at, rings)
				}
				return rings
			}
			var together sync.WaitGroup
			for range 8 {
				together.Go(func() { set(noon.Add(2 * time.Hour)) })
			}
			together.Wait()
			if len(p.alarms) != 1 {
				t.Fatalf("eight who set one alarm have set %v", p.alarms)
			}
			if rings := set(noon.Add(time.Hour + 300*time.Millisecond)); !rings.Equal(noon.Add(time.Hour + time.Second)) {
				t.Errorf("rounded to %s", rings)
			}
			set(noon.Add(2 * time.Hour).In(time.FixedZone("", 7200)))
			if len(p.alarms) != 2 {
				t.Errorf("an earlier one beside it: %v", p.alarms)
			}
			if rings := set(noon.Add(-time.Hour)); rings.Before(noon) || rings.After(noon.Add(time.Minute)) {
				t.Errorf("one that is past rings at %s", rings)
			}
			p.ring(noon.Add(90 * time.Minute))
			p.ring(noon.Add(3 * time.Hour))
			if len(p.calls) != 3 || p.calls[1] != "2026-11-24T13:00:01Z" || p.calls[2] != "2026-11-24T14:00:00Z" {
				t.Errorf("rung: %v", p.calls)
			}
			// A failure that lasts for a while is tried again. A refusal is not, and no error quotes an answer.
			p.fail, p.asked = []int{429, 503}, 0
			if set(noon.Add(5 * time.Hour)); p.asked != 3 {
				t.Errorf("asked %d times", p.asked)
			}
			p.fail, p.asked = []int{403, 403}, 0
			if _, err := a.Set(t.Context(), noon.Add(6*time.Hour)); err == nil || !strings.Contains(err.Error(), "status 403: AccessDeniedException") || strings.Contains(err.Error(), "geheim") || p.asked != 1 {
				t.Errorf("%v, asked %d times", err, p.asked)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := a.Set(ended, noon.Add(7*time.Hour)); err == nil {
				t.Error("set after the end")
			}
		})
	}
}

// A start that fails is tried for an hour, as the page says: no number of tries, of which the first ones follow within minutes, ends
// that before. 185 is the most that there is.
func TestAlarmsAreTriedForAnHour(t *testing.T) {
	p, a := start(t, "aws-scheduler", clouds["aws-scheduler"])
	if _, err := a.Set(t.Context(), noon.Add(time.Hour)); err != nil || p.tries != 185 || p.age != 3600 {
		t.Errorf("%v; tried %d times, for %d s", err, p.tries, p.age)
	}
}

// A start that fails for good is kept in the queue for such starts. Without one, no queue is named: the API takes no empty name.
func TestAlarmsNameTheQueueOfFailedStarts(t *testing.T) {
	for _, arn := range []string{"arn:aws:sqs:eu-central-1:123456789012:dbjobs-dead-letters", ""} {
		p, a := start(t, "aws-scheduler", map[string]string{targetVariable: functionARN, roleVariable: roleARN, deadLettersVariable: arn})
		if _, err := a.Set(t.Context(), noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.deadLetters, " "); got != arn {
			t.Errorf("the queue is %q, want %q", got, arn)
		}
	}
}

// A task that gives up before the pass has ended would start another one, and may leave this one without a processor.
func TestTasksWaitForLongPasses(t *testing.T) {
	kind := "gcp-tasks:" + queue
	p, a := start(t, kind, clouds[kind])
	if _, err := a.Set(t.Context(), noon); err != nil || p.waits != 30*time.Minute {
		t.Errorf("%v; %s; the task waits for %s", err, p.refused, p.waits)
	}
}

// A service gets an identity with its own audience. An API of Google gets an access token.
func TestTokensOfTasks(t *testing.T) {
	kind := "gcp-tasks:" + queue
	for target, want := range map[string]string{
		"https://dbjobs-x7k.a.run.app/tick":                                                 `"oidcToken":{"serviceAccountEmail":"c@p.iam","audience":"https://dbjobs-x7k.a.run.app"}`,
		"https://run.googleapis.com/v2/projects/p-1/locations/europe-west3/jobs/dbjobs:run": `"oauthToken":{"serviceAccountEmail":"c@p.iam"}`,
	} {
		var sent string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Metadata-Flavor", "Google")
			if b, _ := io.ReadAll(r.Body); len(b) > 0 {
				sent = string(b)
			}
			_, _ = fmt.Fprint(w, `{"access_token":"x"}`)
		}))
		defer s.Close()
		_, a := start(t, kind, map[string]string{targetVariable: target, roleVariable: "c@p.iam", endpointVariable: s.URL, "GCE_METADATA_HOST": s.Listener.Addr().String()})
		if _, err := a.Set(t.Context(), noon); err != nil || !strings.Contains(sent, want) {
			t.Errorf("%v: %s, want %s", err, sent, want)
		}
	}
}

func TestSettingsOfAlarms(t *testing.T) {
	with := func(vars ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(vars); i += 2 {
			m[vars[i]] = vars[i+1]
		}
		return m
	}
	for _, c := range []struct {
		kind string
		vars map[string]string
		want string
	}{
		{"sytemd", nil, "did you mean systemd?"},
		{"aws-scheduler", nil, targetVariable},
		{"aws-scheduler", with(targetVariable, functionARN), roleVariable},
		{"aws-scheduler", with(targetVariable, "arn:aws:ecs:eu-central-1:123456789012:cluster/x", roleVariable, roleARN), "ARN of the function"},
		{"aws-scheduler", with(targetVariable, functionARN, roleVariable, roleARN, deadLettersVariable, "https://sqs.eu-central-1.amazonaws.com/1/x"), deadLettersVariable},
		{"aws-scheduler:a/b", with(targetVariable, functionARN, roleVariable, roleARN), "group"},
		{"aws-scheduler", with(targetVariable, functionARN, roleVariable, roleARN, endpointVariable, "http://192.0.2.1"), "want https"},
		{"aws-scheduler", with(targetVariable, functionARN, roleVariable, roleARN, endpointVariable, "http://localhost.example"), "want https"},
		{"aws-scheduler", with(targetVariable, functionARN, roleVariable, roleARN, "AWS_ENDPOINT_URL_SCHEDULER", "http://192.0.2.1"), "AWS_ENDPOINT_URL_SCHEDULER: want https"},
		{"aws-scheduler", with(targetVariable, functionARN, roleVariable, roleARN, "AWS_ENDPOINT_URL", "http://192.0.2.1"), "AWS_ENDPOINT_URL: want https"},
		{"aws-scheduler", with(targetVariable, functionARN, roleVariable, roleARN, nameVariable, "a b"), nameVariable},
		{"gcp-tasks", nil, "gcp-tasks:projects/"},
		{"gcp-tasks:" + queue, with(targetVariable, "http://x/tick"), targetVariable},
		{"gcp-tasks:" + queue, with(targetVariable, "https://x/tick", roleVariable, "nobody"), roleVariable},
		{"at:A", nil, "small letter"},
		{"systemd:x", nil, "nothing may follow"},
		{"exec", nil, "exec:PROGRAM"},
		{"exec:/nonexistent/ring", nil, "no such file"},
	} {
		if _, err := New(c.kind, Settings{Env: lookup(c.vars), Now: time.Now}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.kind, err, c.want)
		}
	}
}

// An alarm for a whole minute stays there if the minute until then has begun when the request is made.
func TestAlarmAMinuteAheadIsNotPutOff(t *testing.T) {
	for kind, vars := range clouds {
		_, a := start(t, kind, vars)
		at := noon.Add(59 * time.Second)
		if rings, err := a.Set(t.Context(), at); err != nil || !rings.Equal(at) {
			t.Errorf("%s: %v, the alarm for %s rings at %s", kind, err, at, rings)
		}
	}
}

// Each partition of AWS has a domain of its own.
func TestWhereSchedulerIs(t *testing.T) {
	for region, want := range map[string]string{
		"aws eu-central-1": "amazonaws.com", "aws-us-gov us-gov-west-1": "amazonaws.com", "aws-cn cn-north-1": "amazonaws.com.cn",
		"aws-eusc eusc-de-east-1": "amazonaws.eu", "aws-iso us-iso-east-1": "c2s.ic.gov", "aws-iso-b us-isob-east-1": "sc2s.sgov.gov",
	} {
		partition, region, _ := strings.Cut(region, " ")
		own := func(arn string) string {
			return strings.Replace(strings.Replace(arn, "arn:aws:", "arn:"+partition+":", 1), "eu-central-1", region, 1)
		}
		a, err := New("aws-scheduler", Settings{Env: lookup(map[string]string{targetVariable: own(functionARN), roleVariable: own(roleARN)}), Now: time.Now})
		if err != nil || a.(*scheduler).url.String() != "https://scheduler."+region+"."+want {
			t.Errorf("%s: %+v, %v, want the domain %s", region, a, err, want)
		}
	}
}
