// Package wake sets alarms: it tells a platform to start the trigger once more, at an instant. Each kind of
// platform has a file. Package tick decides what is due, and so when an alarm has to ring.
//
// The name of an alarm contains its time, on this host also a sum of its command, and no alarm is ever changed or removed. So an
// alarm that is set twice is one alarm, and two alarms that are set at the same time do not harm each other: see tick.Alarm. This also
// needs the fewest rights: to add alarms under one name, but not to list or change any.
package wake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/platform"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/nearest"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick"
)

// The variables with the settings of alarms, besides the kind.
const (
	nameVariable        = "DBJOBS_WAKE_NAME"         // the beginning of the names of alarms; default: dbjobs-wake
	targetVariable      = "DBJOBS_WAKE_TARGET"       // what an alarm starts: an ARN, a URL, or a command line
	roleVariable        = "DBJOBS_WAKE_ROLE"         // the identity with which it starts: the ARN of a role, or the address of a service account
	deadLettersVariable = "DBJOBS_WAKE_DEAD_LETTERS" // where EventBridge Scheduler keeps a start that failed for good: the ARN of a queue of SQS
	endpointVariable    = "DBJOBS_WAKE_ENDPOINT"     // of the platform's API, if it is not the usual one
)

// Variables returns the names of all of them.
func Variables() []string {
	return []string{nameVariable, targetVariable, roleVariable, deadLettersVariable, endpointVariable}
}

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

func (env Lookup) value(name string) string {
	v, _ := env(name)
	return v
}

// Settings are what all kinds of alarms need.
type Settings struct {
	Env     Lookup
	Environ []string      // for programs; the variables of dbjobs are left out
	Secrets *secret.Known // learns the tokens that the platform gives
	Lead    time.Duration // how much earlier alarms ring: for the command of the next pass
	Now     func() time.Time
	// Tick returns the variables and arguments with which the tick that an alarm starts on this host is of the same databases,
	// and has the same name. It is an error if they may not stand in a command line that is kept. nil: there are none.
	Tick func() (variables, args []string, err error)
}

// kinds has the kinds of alarms. The text after the colon of a kind is its argument.
var kinds = map[string]func(s *settings, argument string) (tick.Alarm, error){
	"aws-scheduler": newScheduler,
	"gcp-tasks":     newTasks,
	"systemd":       newSystemd,
	"at":            newAt,
	"exec":          newProgram,
}

// settings are the settings of one alarm, in the form that its kind needs.
type settings struct {
	Settings
	kind, name, target, role string

	starts string // the command line that an alarm of systemd or at starts
	of     string // of what it is: a command line of the owner's, or what says which databases the tick is of; empty: those of the usual settings, or it is of another kind
	dir    string // in which programs are run; empty: that of this process
}

const defaultName = "dbjobs-wake"

// validName leaves room for the time: the name of a schedule has at most 64 characters.
var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,46}$`)

// New reads the kind of alarm, such as exec:/usr/local/bin/ring, and its settings. It sends no request.
func New(kind string, with Settings) (tick.Alarm, error) {
	name, argument, _ := strings.Cut(kind, ":")
	s := &settings{Settings: with, kind: kind, name: cmp.Or(with.Env.value(nameVariable), defaultName)}
	s.target, s.role = with.Env.value(targetVariable), with.Env.value(roleVariable)
	make := kinds[name]
	if make == nil {
		list := []string{"aws-scheduler", "gcp-tasks", "systemd", "at", "exec"}
		hint := ""
		if n := nearest.To(name, list); n != "" {
			hint = "; did you mean " + n + "?"
		}
		return nil, fmt.Errorf("found %.60q, want aws-scheduler, gcp-tasks:QUEUE, systemd, at, or exec:PROGRAM%s", name, hint)
	}
	if !validName.MatchString(s.name) {
		return nil, fmt.Errorf("%s: found %.60q, want a letter, then at most 46 letters, digits, hyphens and underscores", nameVariable, s.name)
	}
	return make(s, argument)
}

// alarm returns the name of an alarm, which says when it rings, and on this host also of what it is: one that starts a tick of one
// database must not be taken for one that starts a tick of another. Ticks of the same databases share an alarm, also where their
// flags differ: with alarms of their own, each would begin another chain of passes.
func (s *settings) alarm(at time.Time) string {
	name := s.name + "-" + at.UTC().Format("20060102T150405Z")
	if s.of == "" {
		return name
	}
	return fmt.Sprintf("%s-%08x", name, crc32.ChecksumIEEE([]byte(s.of)))
}

// up rounds an instant up to the precision of the platform, so that no alarm rings early. least is how far ahead
// the instant has to be.
func (s *settings) up(at time.Time, grain, least time.Duration) time.Time {
	if soonest := s.Now().Add(least); at.Before(soonest) {
		at = soonest
	}
	at = at.UTC().Round(0)
	if down := at.Truncate(grain); down.Before(at) {
		return down.Add(grain)
	}
	return at
}

// send posts JSON until the platform has accepted it. An alarm that already exists (409) counts as accepted.
func (s *settings) send(ctx context.Context, u *url.URL, body []byte, login platform.Login) error {
	const most = 64 << 10
	_, err := platform.Call{Method: http.MethodPost, URL: u, Body: body, Login: login, Most: most}.Send(ctx)
	if refused, ok := errors.AsType[*platform.RefusedError](err); ok && refused.Status == http.StatusConflict {
		return nil
	}
	return err
}

// noArgument refuses an argument for a kind that takes none.
func noArgument(argument string) error {
	if argument != "" {
		return errors.New("nothing may follow the kind")
	}
	return nil
}
