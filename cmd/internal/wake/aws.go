package wake

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/platform"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
)

// schedulerLeast is how far ahead an alarm must be. Scheduler starts within a minute of the time, so a nearer time
// may be past before Scheduler knows it. It is less than a minute, so that the alarms that package tick puts on the
// same whole minute stay there while the request is made.
const schedulerLeast = 50 * time.Second

// How often, and for how long, Scheduler repeats a start that has failed. The pauses begin with seconds, so only the most tries
// that there are leave the end to the time.
const (
	startTries = 185
	startAge   = time.Hour
)

// scheduler sets one-time schedules of EventBridge Scheduler, which are deleted after they have started their
// target. It needs the right scheduler:CreateSchedule on their names, and iam:PassRole on the role.
type scheduler struct {
	*settings
	group, region string
	deadLetters   string // the ARN of a queue; empty: a start that fails for good leaves no trace
	url           *url.URL
	source        *aws.Source
}

var (
	validGroup = lazyregexp.New(`^[0-9a-zA-Z_.-]{1,64}$`)
	validARN   = lazyregexp.New(`^arn:(aws[a-z-]*):([a-z0-9-]+):([a-z0-9-]*):[0-9]{12}:.+$`)
)

func newScheduler(s *settings, group string) (tick.Alarm, error) {
	a := &scheduler{settings: s, group: cmp.Or(group, "default"), deadLetters: s.Env.value(deadLettersVariable), source: aws.NewSource(aws.Lookup(s.Env))}
	if !validGroup.MatchString(a.group) {
		return nil, fmt.Errorf("found the group %.60q, want letters, digits, dots, hyphens and underscores", group)
	}
	target := validARN.FindStringSubmatch(s.target)
	if target == nil || target[2] != "lambda" {
		return nil, fmt.Errorf("%s: found %.120q, want the ARN of the function that an alarm starts, best with an alias: arn:aws:lambda:REGION:ACCOUNT:function:NAME:ALIAS", targetVariable, s.target)
	}
	if role := validARN.FindStringSubmatch(s.role); role == nil || role[2] != "iam" || !strings.Contains(s.role, ":role/") {
		return nil, fmt.Errorf("%s: found %.120q, want the ARN of the role with which Scheduler starts the function", roleVariable, s.role)
	}
	if queue := validARN.FindStringSubmatch(a.deadLetters); a.deadLetters != "" && (queue == nil || queue[2] != "sqs") {
		return nil, fmt.Errorf("%s: found %.120q, want the ARN of a queue of SQS, in which Scheduler keeps what it could not start", deadLettersVariable, a.deadLetters)
	}
	a.region = target[3]
	at, variable := s.Env.value(endpointVariable), endpointVariable
	if at == "" {
		at, variable = aws.Lookup(s.Env).Endpoint("SCHEDULER")
	}
	var err error
	if a.url, err = platform.Endpoint(cmp.Or(at, "https://scheduler."+a.region+"."+aws.Domain(a.region))); err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	return a, nil
}

// schedule is the body of CreateSchedule, of the API's version 2021-06-30.
type schedule struct {
	ActionAfterCompletion string
	ClientToken           string
	Description           string
	FlexibleTimeWindow    struct{ Mode string }
	GroupName             string
	ScheduleExpression    string
	ScheduleExpressionTZ  string `json:"ScheduleExpressionTimezone"`
	Target                scheduleTarget
}

type scheduleTarget struct {
	Arn, RoleArn, Input string
	RetryPolicy         struct{ MaximumEventAgeInSeconds, MaximumRetryAttempts int }
	DeadLetterConfig    *deadLetterQueue `json:",omitempty"`
}

type deadLetterQueue struct{ Arn string }

// Least is the distance at which schedules begin.
func (a *scheduler) Least() time.Duration { return schedulerLeast }

var _ tick.FarAlarm = (*scheduler)(nil)

// Set creates a schedule. A schedule with the same name is the same alarm: Scheduler refuses the second one with
// 409.
func (a *scheduler) Set(ctx context.Context, at time.Time) (time.Time, error) {
	at = a.up(at, time.Second, schedulerLeast)
	// The token differs each time. With the same token, Scheduler could answer that it has made a schedule that
	// has already started.
	s := schedule{ActionAfterCompletion: "DELETE", ClientToken: rand.Text(), Description: "Starts a tick of dbjobs, for what is due then", GroupName: a.group,
		ScheduleExpression: at.Format("at(2006-01-02T15:04:05)"), ScheduleExpressionTZ: "UTC", Target: scheduleTarget{Arn: a.target, RoleArn: a.role, Input: `{"command":"tick"}`}}
	s.FlexibleTimeWindow.Mode = "OFF"
	s.Target.RetryPolicy.MaximumRetryAttempts, s.Target.RetryPolicy.MaximumEventAgeInSeconds = startTries, int(startAge.Seconds())
	if a.deadLetters != "" {
		s.Target.DeadLetterConfig = &deadLetterQueue{a.deadLetters}
	}
	body, err := json.Marshal(s)
	if err != nil {
		return at, err
	}
	return at, a.send(ctx, a.url.JoinPath("schedules", a.alarm(at)), body, platform.AWS(a.source, a.region, "scheduler", a.Secrets, a.Now))
}
