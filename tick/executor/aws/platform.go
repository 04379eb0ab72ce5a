package aws

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
)

// taskHost has the credentials of a task of ECS.
const taskHost = "http://169.254.170.2"

// platformHosts may be asked without TLS, beside the loopback interface: those of ECS and of EKS.
var platformHosts = []netip.Addr{netip.MustParseAddr("169.254.170.2"), netip.MustParseAddr("169.254.170.23"), netip.MustParseAddr("fd00:ec2::23")}

// guarded is the client for the container's endpoint: it has no proxy and follows no redirect, since the request has a token;
// without TLS it connects to nothing but the loopback interface and the platform, whatever a name leads to.
var guarded = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{ControlContext: onPlatform}).DialContext},
}

// onPlatform judges an address that is about to be connected to.
func onPlatform(ctx context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if a := to.Addr().Unmap().WithZone(""); err == nil && ctx.Value(plain{}) != nil && !a.IsLoopback() && !slices.Contains(platformHosts, a) {
		return fmt.Errorf("%s is neither this machine nor an endpoint of ECS or EKS: it is asked by https only", a)
	}
	return err
}

// plain says of a request that it is sent without TLS.
type plain struct{}

// container asks the endpoint of the task or the pod.
func (s *Source) container(ctx context.Context) (*answer, error) {
	full := s.env.value("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if relative := s.env.value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); relative != "" {
		if full = s.task + relative; !strings.HasPrefix(relative, "/") {
			return nil, errors.New("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with /")
		}
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is no URL of http or https")
	}
	if u.Scheme == "http" {
		ctx = context.WithValue(ctx, plain{}, true)
	}
	token := s.env.value("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := s.env.value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" { // read each time: it is replaced
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	if strings.ContainsAny(token, "\r\n") {
		return nil, errors.New("the authorization token has a line end in it")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("the URI of the container's credentials is none to which a request can be sent")
	}
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	return read(get(guarded, req))
}

// machine asks the metadata service of the machine, version 2: a session first, then the role, then its credentials.
func (s *Source) machine(ctx context.Context) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.brief)
	defer cancel()
	at := "http://169.254.169.254"
	if strings.EqualFold(s.env.value("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"), "ipv6") {
		at = "http://[fd00:ec2::254]"
	}
	if given := s.env.value("AWS_EC2_METADATA_SERVICE_ENDPOINT"); given != "" {
		at = strings.TrimSuffix(given, "/")
	}
	ask := func(method, path, header, value string) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, method, at+path, nil)
		if err != nil {
			return nil, errors.New("AWS_EC2_METADATA_SERVICE_ENDPOINT is no URL")
		}
		req.Header.Set(header, value)
		return get(direct, req)
	}
	token, err := ask(http.MethodPut, "/latest/api/token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
	if err != nil {
		return nil, fmt.Errorf("%w; nothing else in the environment names credentials, such as AWS_ACCESS_KEY_ID", err)
	}
	const roles, header = "/latest/meta-data/iam/security-credentials/", "X-Aws-Ec2-Metadata-Token"
	session := strings.TrimSpace(string(token))
	if strings.ContainsAny(session, "\r\n") {
		return nil, errors.New("its token has a line end in it")
	}
	list, err := ask(http.MethodGet, roles, header, session)
	if err != nil {
		return nil, fmt.Errorf("%w (has the machine a role?)", err)
	}
	role, _, _ := strings.Cut(strings.TrimSpace(string(list)), "\n")
	return read(ask(http.MethodGet, roles+url.PathEscape(role), header, session))
}

// read reads an answer in JSON. Its text would be shown by the error of the decoder.
func read(text []byte, err error) (*answer, error) {
	if err != nil {
		return nil, err
	}
	a := &answer{}
	if json.Unmarshal(text, a) != nil {
		return nil, errors.New("the answer is not JSON as it should be")
	}
	return a, nil
}

// sts is the client for STS, which is outside: it may have a proxy. It keeps no connection: after a freeze of the process, a
// kept one may lead nowhere.
var sts = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
}

// webIdentity asks STS for credentials of the role, with the token that the cluster has put into a file.
func (s *Source) webIdentity(ctx context.Context) (*answer, error) {
	role := s.env.value("AWS_ROLE_ARN")
	if role == "" {
		return nil, errors.New("AWS_ROLE_ARN is not set")
	}
	token, err := os.ReadFile(s.env.value("AWS_WEB_IDENTITY_TOKEN_FILE")) // each time: it is replaced
	if err != nil {
		return nil, fmt.Errorf("AWS_WEB_IDENTITY_TOKEN_FILE: %w", err)
	}
	session := s.env.value("AWS_ROLE_SESSION_NAME")
	if session == "" {
		session = "dbjobs"
	}
	form := url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {role}, "RoleSessionName": {session},
		"WebIdentityToken": {strings.TrimSpace(string(token))}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.stsEndpoint(), strings.NewReader(form.Encode()))
	if err != nil {
		_, variable := s.env.Endpoint("STS")
		return nil, errors.New(variable + " is no URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	text, err := get(sts, req)
	if err != nil {
		return nil, err
	}
	var told struct {
		Credentials answer `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}
	if xml.Unmarshal(text, &told) != nil {
		return nil, errors.New("the answer of STS is not XML as it should be")
	}
	return &told.Credentials, nil
}

// stsEndpoint is that of the region, or of all.
func (s *Source) stsEndpoint() string {
	if at, _ := s.env.Endpoint("STS"); at != "" {
		return at
	}
	region := cmp.Or(s.env.value("AWS_REGION"), s.env.value("AWS_DEFAULT_REGION"))
	if region == "" {
		return "https://sts.amazonaws.com/"
	}
	return "https://sts." + region + "." + Domain(region) + "/"
}
