package wake

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/platform"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor/gcp"
)

// tasks sets tasks of Cloud Tasks, each with a name. It needs the right cloudtasks.tasks.create on the queue, and
// iam.serviceAccounts.actAs on the account as which the task calls.
//
// Cloud Tasks keeps the name of a task for hours after the task has called or was deleted, of some queues for days, and refuses
// another task with that name. The name contains the time of the alarm. So another task with the same name is needed only if an
// alarm has called before its time, or if somebody has deleted its task, as a purge of the queue does. Then the safety trigger
// comes. To find out whether a task is there takes the right to read tasks, and a request for each alarm that was set before.
type tasks struct {
	*settings
	queue string
	url   *url.URL
}

var (
	validQueue   = lazyregexp.New(`^projects/[a-z0-9:.-]+/locations/[a-z0-9-]+/queues/[A-Za-z0-9-]{1,100}$`)
	validAccount = lazyregexp.New(`^[^@\s]+@[^@\s]+\.[^@\s]+$`)
)

func newTasks(s *settings, queue string) (tick.Alarm, error) {
	a := &tasks{settings: s, queue: queue}
	if !validQueue.MatchString(queue) {
		return nil, fmt.Errorf("found the queue %.120q, want gcp-tasks:projects/PROJECT/locations/LOCATION/queues/QUEUE", queue)
	}
	u, err := url.Parse(s.target)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s: found %.120q, want the URL that a task calls: https://SERVICE/tick of dbjobs serve, or the :run of a Cloud Run job", targetVariable, s.target)
	}
	if !validAccount.MatchString(s.role) {
		return nil, fmt.Errorf("%s: found %.120q, want the address of the service account with which a task calls", roleVariable, s.role)
	}
	if a.url, err = platform.Endpoint(cmp.Or(s.Env.value(endpointVariable), "https://cloudtasks.googleapis.com")); err != nil {
		return nil, fmt.Errorf("%s: %w", endpointVariable, err)
	}
	return a, nil
}

// task is the task of CreateTask, of the API's version 2.
type task struct {
	Name             string      `json:"name"`
	ScheduleTime     time.Time   `json:"scheduleTime"`
	DispatchDeadline string      `json:"dispatchDeadline"`
	HTTPRequest      taskRequest `json:"httpRequest"`
}

// taskWaits is how long Cloud Tasks waits for the answer to a call: the longest time that it can. After its default, ten minutes, it
// would hang up and call again while the pass runs, and a service that has no caller gets no processor.
const taskWaits = "1800s"

type taskRequest struct {
	URL        string     `json:"url"`
	HTTPMethod string     `json:"httpMethod"`
	OIDC       *taskToken `json:"oidcToken,omitempty"`
	OAuth      *taskToken `json:"oauthToken,omitempty"`
}

type taskToken struct {
	Account  string `json:"serviceAccountEmail"`
	Audience string `json:"audience,omitempty"`
}

// Set creates a task. A task with the same name is the same alarm: Cloud Tasks refuses the second one with 409, also if the first
// one is gone.
func (a *tasks) Set(ctx context.Context, at time.Time) (time.Time, error) {
	at = a.up(at, time.Second, 0)
	t := task{Name: a.queue + "/tasks/" + a.alarm(at), ScheduleTime: at, DispatchDeadline: taskWaits, HTTPRequest: taskRequest{URL: a.target, HTTPMethod: http.MethodPost}}
	u, err := url.Parse(a.target)
	if err != nil {
		return at, err
	}
	if strings.HasSuffix(u.Hostname(), ".googleapis.com") { // an API of Google takes an access token, a service takes an identity token
		t.HTTPRequest.OAuth = &taskToken{Account: a.role}
	} else {
		t.HTTPRequest.OIDC = &taskToken{Account: a.role, Audience: cmp.Or(a.Env.value("DBJOBS_OIDC_AUDIENCE"), u.Scheme+"://"+u.Host)}
	}
	body, err := json.Marshal(struct {
		Task task `json:"task"`
	}{t})
	if err != nil {
		return at, err
	}
	return at, a.send(ctx, a.url.JoinPath("v2", a.queue, "tasks"), body, platform.GCP(gcp.Lookup(a.Env), a.Secrets))
}
