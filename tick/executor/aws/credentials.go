package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick/executor/again"
)

// Credentials say by whom a request is: a key, its secret, and the token of a session where there is one.
type Credentials struct{ KeyID, Secret, SessionToken string }

// Source finds the credentials of the process where the platform has put them, as AWS's own tools do, in the same order:
//
//  1. in the environment, as on Lambda;
//  2. by the web identity of a pod (IRSA), for which STS gives credentials;
//  3. from the container's endpoint: a task of ECS, or a pod with an EKS pod identity;
//  4. from the metadata of the machine (EC2, IMDSv2).
//
// Those that expire are kept until they are about to. Where they are asked for is up to the environment of the process and to
// nothing in a definition. Several goroutines may use it.
type Source struct {
	env  Lookup
	task string // URL of the endpoint of a task of ECS
	// brief is how long the metadata of a machine may take, which elsewhere than on EC2 nobody has.
	brief time.Duration

	mu     sync.Mutex // guards the next fields
	asking *question  // that is being asked; nil: none
	kept   Credentials
	until  time.Time // they expire; zero: none are kept
}

// question is asked by one attempt, and its answer is for all that wait for it.
type question struct {
	over chan struct{} // closed when the answer is there
	// vain says that only the time of the attempt that asks was over: that is no answer.
	vain bool
	c    Credentials
	err  error
}

// NewSource makes a source that looks into env.
func NewSource(env Lookup) *Source {
	return &Source{env: env, task: taskHost, brief: 3 * time.Second}
}

const (
	early   = 5 * time.Minute  // before they expire, others are asked for
	patient = 10 * time.Second // with all that is asked
)

// Credentials are those that are good at now and for some minutes. A caller that waits while another one asks gets the answer of that
// one, also where it is a failure: if each asked in its turn, a platform that is away would hold them up one after the other. It
// waits no longer than ctx lasts.
func (s *Source) Credentials(ctx context.Context, now time.Time) (Credentials, error) {
	if c, set, err := fromEnvironment(s.env); set {
		return c, err
	}
	for {
		c, q, mine := s.next(now)
		switch {
		case q == nil:
			return c, nil
		case mine:
			s.answer(ctx, now, q)
			return q.c, q.err
		}
		select {
		case <-q.over:
			if !q.vain {
				return q.c, q.err
			}
		case <-ctx.Done():
			return Credentials{}, outOfTime(ctx)
		}
	}
}

// next returns the credentials that are kept, if they are good for long enough, or else the question that is being asked. If there is
// none, it is a new one, and for the caller to ask.
func (s *Source) next(now time.Time) (c Credentials, q *question, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Add(early).Before(s.until) {
		return s.kept, nil, false
	}
	if mine = s.asking == nil; mine {
		s.asking = &question{over: make(chan struct{})}
	}
	return Credentials{}, s.asking, mine
}

// answer asks the platform, and answers the question.
func (s *Source) answer(ctx context.Context, now time.Time, q *question) {
	within, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	c, until, err := s.ask(within, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.kept, s.until = c, until
	case now.Before(s.until): // the old ones are still good, and new ones may come later
		c, err = s.kept, nil
	case ctx.Err() != nil:
		q.vain, err = true, outOfTime(ctx)
	}
	q.c, q.err, s.asking = c, err, nil
	close(q.over)
}

// outOfTime says that a caller could not wait for credentials.
func outOfTime(ctx context.Context) error {
	return fmt.Errorf("credentials of AWS: %w", context.Cause(ctx))
}

// fromEnvironment is what the environment itself has. set reports whether it has any of it.
func fromEnvironment(env Lookup) (c Credentials, set bool, err error) {
	c = Credentials{env.value("AWS_ACCESS_KEY_ID"), env.value("AWS_SECRET_ACCESS_KEY"), env.value("AWS_SESSION_TOKEN")}
	if set = c.KeyID != "" || c.Secret != ""; set && (c.KeyID == "" || c.Secret == "") {
		err = errors.New("of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set")
	}
	return c, set, err
}

func (s *Source) ask(ctx context.Context, now time.Time) (Credentials, time.Time, error) {
	var from string
	var ask func(context.Context) (*answer, error)
	switch {
	case s.env.value("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		from, ask = "the web identity", s.webIdentity
	case s.env.value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" || s.env.value("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "":
		from, ask = "the container's endpoint", s.container
	case strings.EqualFold(s.env.value("AWS_EC2_METADATA_DISABLED"), "true"):
		return Credentials{}, time.Time{}, errNowhere
	default:
		from, ask = "the machine's metadata", s.machine
	}
	a, err := ask(ctx)
	if err != nil {
		return Credentials{}, time.Time{}, fmt.Errorf("credentials of AWS, from %s: %w", from, err)
	}
	c := Credentials{a.AccessKeyID, a.SecretAccessKey, cmp.Or(a.Token, a.SessionToken)}
	switch {
	case a.Code != "" && a.Code != "Success", c.KeyID == "" || c.Secret == "":
		return c, time.Time{}, fmt.Errorf("credentials of AWS, from %s: the answer has none (%.40q)", from, a.Code)
	case a.Expiration.IsZero():
		a.Expiration = now // they are good, nobody says for how long
	case !now.Before(a.Expiration):
		return c, time.Time{}, fmt.Errorf("credentials of AWS, from %s: they have expired at %s; is the clock of this host right?", from, a.Expiration.UTC().Format(time.RFC3339))
	}
	return c, a.Expiration, nil
}

var errNowhere = errors.New("no credentials of AWS: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor a web identity nor a container's endpoint are set, " +
	"and AWS_EC2_METADATA_DISABLED is true")

// answer is what those tell who give credentials, in JSON or in XML.
type answer struct {
	Code            string // of the metadata
	AccessKeyID     string `json:"AccessKeyId"     xml:"AccessKeyId"`
	SecretAccessKey string `json:"SecretAccessKey" xml:"SecretAccessKey"`
	Token           string // but of STS
	SessionToken    string // of STS
	Expiration      time.Time
}

// get sends a request, again if the platform is throttling or failing for a moment, and reads an answer 200. No error has what
// was answered: it may be, or quote, a secret.
func get(c *http.Client, req *http.Request) (body []byte, err error) {
	err = again.Until(req.Context(), func(ctx context.Context) (passes bool, err error) {
		try := req.WithContext(ctx)
		if req.GetBody != nil {
			if try.Body, err = req.GetBody(); err != nil {
				return false, err
			}
		}
		body, passes, err = getOnce(c, try)
		return passes, err
	})
	return body, err
}

func getOnce(c *http.Client, req *http.Request) (body []byte, passes bool, err error) {
	resp, err := c.Do(req)
	if err != nil {
		return nil, true, err
	}
	defer resp.Body.Close()
	const most = 64 << 10
	if body, err = io.ReadAll(io.LimitReader(resp.Body, most)); err != nil {
		return nil, true, err
	}
	if resp.StatusCode != http.StatusOK {
		why := reason(body)
		return nil, again.Passes(resp.StatusCode) || momentary.MatchString(why), fmt.Errorf("%s answers with status %d%s", req.URL.Host, resp.StatusCode, why)
	}
	return body, false, nil
}

// momentary matches the names of errors that STS and Secrets Manager answer with status 400, and that pass.
var momentary = lazyregexp.New(`Throttling|IDPCommunicationError`)
