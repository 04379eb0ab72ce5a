package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
	"github.com/dbjobs/dbjobs/tick/executor/gcp"
)

func (s *HTTPSpec) checkAuth() error {
	a := s.Auth
	switch {
	case a == nil:
		return nil
	case a.given() != 1:
		return wrong(errors.New("want exactly one of bearer, basic, aws and gcp"), "auth")
	case a.Basic != nil:
		if a.Basic.User == "" || strings.Contains(reference.ReplaceAllString(a.Basic.User, ""), ":") {
			return wrong(errNoUser, "auth", "basic", "user")
		}
		if err := CheckReferences(a.Basic.User); err != nil {
			return wrong(err, "auth", "basic", "user")
		}
		if a.Basic.Password == "" && secretReference.MatchString(a.Basic.User) { // some services take a key as the user, without a password
			return nil
		}
		return mustBeSecret(a.Basic.Password, "auth", "basic", "password")
	case a.Bearer != "":
		return mustBeSecret(a.Bearer, "auth", "bearer")
	case strings.HasPrefix(s.URL, "http:"):
		return wrong(errors.New("what logs in to a cloud is sent by https only"), "url")
	case a.AWS != nil:
		return a.AWS.check()
	}
	return a.GCP.check()
}

var errNoUser = errors.New("is missing or has a colon in it")

// given returns how many of the fields are set.
func (a *HTTPAuth) given() (n int) {
	for _, is := range []bool{a.Bearer != "", a.Basic != nil, a.AWS != nil, a.GCP != nil} {
		if is {
			n++
		}
	}
	return n
}

var awsName = lazyregexp.New(`^[a-z0-9-]+$`)

func (a *HTTPAWS) check() error {
	if !awsName.MatchString(a.Service) {
		return wrong(fmt.Errorf("found %.40q, want the name of a service in signatures, such as sqs", a.Service), "auth", "aws", "service")
	}
	if a.Region != "" && !awsName.MatchString(a.Region) {
		return wrong(fmt.Errorf("found %.40q, want a region such as eu-central-1", a.Region), "auth", "aws", "region")
	}
	return nil
}

func (g *HTTPGCP) check() error {
	if g.Token != "access" && g.Token != "identity" {
		return wrong(fmt.Errorf("found %.40q, want access or identity", g.Token), "auth", "gcp", "token")
	}
	if g.Audience != "" && g.Token == "access" {
		return wrong(errors.New("only an identity has an audience"), "auth", "gcp", "audience")
	}
	if err := CheckReferences(g.Audience); err != nil {
		return wrong(err, "auth", "gcp", "audience")
	}
	return nil
}

// signByWebhook signs the request by Standard Webhooks.
func (c *call) signByWebhook() error {
	if len(c.spec.Secret) == 0 {
		return nil
	}
	secrets := make([]string, len(c.spec.Secret))
	for i, s := range c.spec.Secret {
		var err error
		if secrets[i], err = c.expand(s); err != nil {
			return err
		}
	}
	return signWebhook(c.header, secrets, requestKey(c.task), c.now, c.body)
}

// login adds the credentials to a request.
func (c *call) login(ctx context.Context, req *http.Request) error {
	a := c.spec.Auth
	switch {
	case a == nil:
		return nil
	case a.Basic != nil:
		user, err := c.expand(a.Basic.User)
		if err != nil {
			return err
		}
		if user == "" || strings.Contains(user, ":") {
			return fmt.Errorf("auth.basic.user: %w", errNoUser)
		}
		password, err := c.expand(a.Basic.Password)
		if err != nil {
			return err
		}
		req.SetBasicAuth(user, password)
		return nil
	case a.Bearer != "":
		token, err := c.expand(a.Bearer)
		if err != nil {
			return err
		}
		return bearer(req, token)
	case req.URL.Scheme != "https":
		return errors.New("what logs in to a cloud is sent by https only")
	case a.AWS != nil:
		return c.loginAWS(ctx, req)
	}
	return c.loginGCP(ctx, req)
}

func bearer(req *http.Request, token string) error {
	if token == "" || !validHeader(token) {
		return errors.New("the token is empty or has a control character, such as the end of a line, which no header can have")
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

func (c *call) loginAWS(ctx context.Context, req *http.Request) error {
	if err := c.host.AllowsCloud(c.task.Job.Owner, "aws"); err != nil {
		return err
	}
	credentials, err := c.aws.Credentials(ctx, c.now)
	if err != nil {
		return err
	}
	c.host.Known.For(c.task.Job.Owner).Issue(credentials.Secret)
	c.host.Known.For(c.task.Job.Owner).Issue(credentials.SessionToken)
	region := cmp.Or(c.spec.Auth.AWS.Region, aws.RegionIn(req.URL.Hostname()))
	if region == "" {
		value, _ := c.env("AWS_REGION")
		other, _ := c.env("AWS_DEFAULT_REGION")
		if region = cmp.Or(value, other); region == "" {
			return errors.New("auth.aws.region is missing: neither the host's name nor AWS_REGION has a region")
		}
	}
	aws.Sign(req.Header, req.Method, req.URL, c.body, credentials, region, c.spec.Auth.AWS.Service, c.now)
	return nil
}

func (c *call) loginGCP(ctx context.Context, req *http.Request) error {
	if err := c.host.AllowsCloud(c.task.Job.Owner, "gcp"); err != nil {
		return err
	}
	g := c.spec.Auth.GCP
	var token string
	var err error
	if host := req.URL.Hostname(); g.Token == "access" && host != "googleapis.com" && !strings.HasSuffix(host, ".googleapis.com") {
		return errors.New("an access token is good for all that the process may do, and is sent to hosts of googleapis.com only; another service takes gcp: identity")
	} else if g.Token == "identity" {
		var audience string
		if audience, err = c.expand(g.Audience); err == nil {
			token, err = gcp.Identity(ctx, gcp.Lookup(c.env), cmp.Or(audience, req.URL.Scheme+"://"+req.URL.Host))
		}
	} else {
		token, err = gcp.AccessToken(ctx, gcp.Lookup(c.env))
	}
	if err != nil {
		return err
	}
	c.host.Known.For(c.task.Job.Owner).Issue(token)
	return bearer(req, token)
}
