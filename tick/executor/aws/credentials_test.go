package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest/bubble"
)

var at = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// platform gives credentials in all ways in which AWS does, by the requests that AWS documents. Each time they are new ones, and
// good for an hour; while down, it refuses, and quotes what it was sent. It is busy for a number of requests.
type platform struct {
	*httptest.Server
	given, busy atomic.Int32
	down        atomic.Bool
}

func startPlatform(t *testing.T) *platform {
	p := &platform{}
	fields := func() (key, secret, token, until string) {
		n := int(p.given.Add(1))
		return fmt.Sprint("ASIA", n), fmt.Sprint("secret", n), fmt.Sprint("token", n), at.Add(time.Duration(n) * time.Hour).Format(time.RFC3339)
	}
	asJSON := func(w http.ResponseWriter, more string) {
		key, secret, token, until := fields()
		_, _ = fmt.Fprintf(w, `{%s"AccessKeyId": %q, "SecretAccessKey": %q, "Token": %q, "Expiration": %q}`, more, key, secret, token, until)
	}
	mux := http.NewServeMux()
	refuse := func(w http.ResponseWriter, why string) { http.Error(w, "AccessDenied, "+why, http.StatusForbidden) }
	mux.HandleFunc("GET /v2/credentials/task", func(w http.ResponseWriter, _ *http.Request) { asJSON(w, "") })
	mux.HandleFunc("GET /v1/credentials", func(w http.ResponseWriter, r *http.Request) { // the agent of EKS
		if r.Header.Get("Authorization") != "pod-token" {
			refuse(w, r.Header.Get("Authorization"))
			return
		}
		asJSON(w, "")
	})
	mux.HandleFunc("GET /elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/v2/credentials/task", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = fmt.Fprint(w, "session")
	})
	metadata := func(answer func(w http.ResponseWriter)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-aws-ec2-metadata-token") != "session" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			answer(w)
		}
	}
	mux.HandleFunc("GET /latest/meta-data/iam/security-credentials/{$}", metadata(func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, "jobs\n") }))
	mux.HandleFunc("GET /latest/meta-data/iam/security-credentials/jobs", metadata(func(w http.ResponseWriter) { asJSON(w, `"Code": "Success", "Type": "AWS-HMAC", `) }))
	mux.HandleFunc("POST /sts", func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("Action") != "AssumeRoleWithWebIdentity" || r.PostFormValue("Version") != "2011-06-15" || r.PostFormValue("RoleArn") != "arn:aws:iam::123456789012:role/jobs" ||
			r.PostFormValue("RoleSessionName") == "" || r.PostFormValue("WebIdentityToken") != "pod-token" {
			refuse(w, r.PostFormValue("WebIdentityToken"))
			return
		}
		key, secret, token, until := fields()
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
  <SubjectFromWebIdentityToken>system:serviceaccount:jobs</SubjectFromWebIdentityToken>
  <Credentials><SessionToken>%s</SessionToken><SecretAccessKey>%s</SecretAccessKey><Expiration>%s</Expiration><AccessKeyId>%s</AccessKeyId></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, token, secret, until, key)
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.Close { // after a freeze of the process, a kept connection may lead nowhere
			t.Errorf("%s: the connection is to be kept", r.URL.Path)
		}
		if p.busy.Add(-1) >= 0 {
			if r.URL.Path == "/sts" {
				http.Error(w, "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>", http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if p.down.Load() {
			refuse(w, fmt.Sprint(r.Header))
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// STS is asked in the region of the process, whichever variable names it. The one of all knows no role of another partition, and
// each partition has a domain of its own.
func TestRegionOfSTS(t *testing.T) {
	for want, vars := range map[string]map[string]string{
		"https://sts.amazonaws.com/":                 {},
		"https://sts.eu-west-1.amazonaws.com/":       {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"},
		"https://sts.cn-north-1.amazonaws.com.cn/":   {"AWS_DEFAULT_REGION": "cn-north-1"},
		"https://sts.us-gov-west-1.amazonaws.com/":   {"AWS_REGION": "us-gov-west-1"},
		"https://sts.eusc-de-east-1.amazonaws.eu/":   {"AWS_REGION": "eusc-de-east-1"},
		"https://sts.eu-isoe-west-1.cloud.adc-e.uk/": {"AWS_REGION": "eu-isoe-west-1"},
	} {
		if got := NewSource(environment(vars)).stsEndpoint(); got != want {
			t.Errorf("%v: %s, want %s", vars, got, want)
		}
	}
}

// Each way of AWS leads to credentials, which are kept until some minutes before they expire.
func TestSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("pod-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, vars := range map[string]map[string]string{
		"ECS":                     {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/task"},
		"EKS pod identity":        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "old"},
		"a token in the variable": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "pod-token"},
		"IRSA":                    {"AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/jobs", "AWS_ENDPOINT_URL_STS": "URL/sts"},
		"STS at the URL of all":   {"AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/jobs", "AWS_ENDPOINT_URL": "URL/sts"},
		"EC2":                     {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "URL/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPlatform(t)
			for variable, v := range vars {
				vars[variable] = strings.Replace(v, "URL", p.URL, 1)
			}
			s := NewSource(environment(vars))
			s.task, s.brief = p.URL, time.Minute // a busy machine takes its time
			for _, step := range []struct {
				after time.Duration
				down  bool
				want  int // which of them; 0: an error
			}{{0, false, 1}, {54 * time.Minute, false, 1}, {56 * time.Minute, true, 1}, {56 * time.Minute, false, 2}, {2 * time.Hour, true, 0}, {2 * time.Hour, false, 3}} {
				p.down.Store(step.down)
				p.busy.Store(2) // it is asked again, as AWS's own tools do
				c, err := s.Credentials(t.Context(), at.Add(step.after))
				want := Credentials{fmt.Sprint("ASIA", step.want), fmt.Sprint("secret", step.want), fmt.Sprint("token", step.want)}
				if (err == nil) != (step.want > 0) || err == nil && c != want {
					t.Errorf("%s, after %s: %+v, %v, want %+v", name, step.after, c, err, want)
				}
				if err != nil && (!strings.Contains(err.Error(), "status 403: AccessDenied") || strings.Contains(err.Error(), "pod-token")) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// What the environment has goes before all that would have to be asked, also where it was replaced.
func TestSourceEnvironment(t *testing.T) {
	vars := map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/"}
	s := NewSource(environment(vars))
	for _, token := range []string{"", "one", "two"} {
		vars["AWS_SESSION_TOKEN"] = token
		if c, err := s.Credentials(t.Context(), at); err != nil || c != (Credentials{"id", "secret", token}) {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

func TestSourceProblems(t *testing.T) {
	p := startPlatform(t)
	absent := filepath.Join(t.TempDir(), "absent")
	for _, c := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"AWS_ACCESS_KEY_ID": "id"}, "only one is set"},
		{map[string]string{"AWS_EC2_METADATA_DISABLED": "true"}, "no credentials of AWS"},
		{map[string]string{"AWS_EC2_METADATA_DISABLED": "TRUE"}, "no credentials of AWS"},
		// Without TLS nothing but this machine and the platform is asked, whatever name leads there.
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/"}, "192.0.2.1 is neither this machine"},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.169.254/"}, "169.254.169.254 is neither this machine"},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://[fd00:ec2::254]/"}, "fd00:ec2::254 is neither this machine"},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "ftp://127.0.0.1/"}, "no URL of http or https"},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "@192.0.2.1/"}, "does not begin with /"},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": p.URL + "/elsewhere"}, "status 307"},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": p.URL + "/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "geheim\r\nX: 1"}, "line end"},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": p.URL + "/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": absent}, "absent"},
		{map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": absent}, "AWS_ROLE_ARN is not set"},
		{map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": absent, "AWS_ROLE_ARN": "r"}, "absent"},
		{map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": p.URL + "/nothing"}, "status 404"},
	} {
		_, err := NewSource(environment(c.vars)).Credentials(t.Context(), at)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v: %v, want %q", c.vars, err, c.want)
		}
	}
	if _, err := NewSource(environment(map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": p.URL + "/v2/credentials/task"})).Credentials(t.Context(), at.Add(24*time.Hour)); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("credentials that have expired: %v", err)
	}
}

// An attempt that waits while another one asks a platform that does not answer waits no longer than its own time.
func TestSourceThatDoesNotAnswer(t *testing.T) {
	asked, over := make(chan bool, 3), make(chan bool) // it may be asked again
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- true
		<-over
	}))
	t.Cleanup(silent.Close)
	s := NewSource(environment(map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": silent.URL}))
	first := make(chan error)
	go func() {
		_, err := s.Credentials(t.Context(), at)
		first <- err
	}()
	<-asked
	why := errors.New("the time of the step is over")
	brief, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
	defer cancel()
	_, err := s.Credentials(brief, at)
	select {
	case err := <-first:
		t.Errorf("it waited for the first one: %v", err)
	default:
	}
	if !errors.Is(err, why) || !strings.Contains(err.Error(), "credentials of AWS") {
		t.Error(err)
	}
	close(over)
	if err := <-first; err == nil {
		t.Error("credentials of an empty answer")
	}
}

// Attempts that wait while another one asks get its answer, also where that is a failure: they do not ask in turn, each for as long
// as a platform that is away may take. Where only the time of the one that asks is over, another one asks.
func TestSourceSharesAnAnswer(t *testing.T) {
	for name, c := range map[string]struct{ cut, wantAsked, wantCut int }{"a failure": {0, 1, 0}, "its time is over": {1, 2, 1}} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				answers := make(chan bool)
				s := NewSource(func(name string) (string, bool) {
					switch name {
					case "AWS_WEB_IDENTITY_TOKEN_FILE": // here it begins to ask
						asked.Add(1)
						<-answers
					case "AWS_EC2_METADATA_DISABLED":
						return "true", true
					}
					return "", false
				})
				why := errors.New("the time of the step is over")
				errs := make(chan error, 5)
				call := func(ctx context.Context) {
					_, err := s.Credentials(ctx, at)
					errs <- err
				}
				first, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				go call(first)
				synctest.Wait()
				for range cap(errs) - 1 {
					go call(t.Context())
				}
				synctest.Wait()
				if c.cut > 0 {
					cancel(why)
				}
				answers <- true
				synctest.Wait() // all that still wait do it for the next answer
				close(answers)
				failed, cut := 0, 0
				for range cap(errs) {
					if err := <-errs; errors.Is(err, why) {
						cut++
					} else if errors.Is(err, errNowhere) {
						failed++
					}
				}
				if int(asked.Load()) != c.wantAsked || cut != c.wantCut || failed != cap(errs)-cut {
					t.Errorf("asked %d times, %d failed, %d were cut; want %d, and %d cut", asked.Load(), failed, cut, c.wantAsked, c.wantCut)
				}
			})
		})
	}
}

// A try that hangs, as on a connection that leads nowhere, leaves time for another one.
func TestSourceAsksAgainAfterATryThatHangs(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			<-r.Context().Done() // the client has given up
			return
		}
		_, _ = fmt.Fprintf(w, `{"AccessKeyId": "ASIA", "SecretAccessKey": "secret", "Expiration": %q}`, at.Add(time.Hour).Format(time.RFC3339))
	}))
	t.Cleanup(s.Close)
	c, err := NewSource(environment(map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": s.URL})).Credentials(t.Context(), at)
	if err != nil || c.KeyID != "ASIA" || asked.Load() != 2 {
		t.Errorf("%+v, %v, after %d requests", c, err, asked.Load())
	}
}
