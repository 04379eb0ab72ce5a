package executor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/tick/executor/aws"
)

// cloud is a server that represents all services of all clouds, by TLS, and an executor whose connections all lead to
// it.
func cloud(t *testing.T, h *Host, env map[string]string) (*HTTP, func() []received) {
	t.Helper()
	return cloudThat(t, h, env, nil)
}

// cloudThat is cloud with an answer.
func cloudThat(t *testing.T, h *Host, env map[string]string, answer http.HandlerFunc) (*HTTP, func() []received) {
	t.Helper()
	plain, got := receiver(t, answer)
	s := httptest.NewTLSServer(plain.Config.Handler)
	t.Cleanup(s.Close)
	x := NewHTTP(h)
	t.Cleanup(func() { x.Close() })
	x.env = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	x.aws = aws.NewSource(x.env)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	x.transports["ann"] = &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		},
	}
	return x, got
}

// credentials are the credentials in the examples of AWS.
var credentials = map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "AWS_SESSION_TOKEN": "s3ssion"}

func TestHTTPSignsForAWS(t *testing.T) {
	host := &Host{Clouds: []Cloud{{Name: "aws", Owners: Owners{"ann"}}}}
	for spec, want := range map[string]string{
		`{"url": "https://sqs.eu-central-1.amazonaws.com/", "json": {}, "auth": {"aws": {"service": "sqs"}}}`:                             "/eu-central-1/sqs/",
		`{"url": "https://x.lambda-url.eu-west-1.on.aws/", "method": "GET", "auth": {"aws": {"service": "lambda"}}}`:                      "/eu-west-1/lambda/",
		`{"url": "https://sqs.eusc-de-east-1.amazonaws.eu/", "json": {}, "auth": {"aws": {"service": "sqs"}}}`:                            "/eusc-de-east-1/sqs/",
		`{"url": "https://sqs.eu-central-1.amazonaws.com/", "auth": {"aws": {"service": "sqs", "region": "eu-west-2"}}}`:                  "/eu-west-2/sqs/",
		`{"url": "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", "method": "GET", "auth": {"aws": {"service": "iam"}}}`: "/us-east-1/iam/",
	} {
		env := map[string]string{"AWS_REGION": "us-east-1"}
		for name, v := range credentials {
			env[name] = v
		}
		x, got := cloud(t, host, env)
		if _, err := x.Execute(t.Context(), attempt(spec)); err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		h := got()[0].header
		if a := h.Get("Authorization"); !strings.HasPrefix(a, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261120"+want+"aws4_request, SignedHeaders=") ||
			!strings.Contains(a, "x-amz-security-token") || h.Get("X-Amz-Security-Token") != "s3ssion" || h.Get("X-Amz-Date") != "20261120T080000Z" {
			t.Errorf("%s: %v", spec, h)
		}
	}
}

func TestHTTPAuthProblems(t *testing.T) {
	onAWS, gcp := &Host{Clouds: []Cloud{{Name: "aws", Owners: Owners{"ann"}}}}, &Host{Clouds: []Cloud{{Name: "gcp"}}}
	for _, c := range []struct {
		host *Host
		env  map[string]string
		spec string
		want string
	}{
		{nil, credentials, `{"url": "https://sqs.eu-central-1.amazonaws.com/", "auth": {"aws": {"service": "sqs"}}}`, "does not allow to act as it does in the cloud aws"},
		{&Host{Own: true}, credentials, `{"url": "https://sqs.eu-central-1.amazonaws.com/", "auth": {"aws": {"service": "sqs"}}}`, "says where they may be): clouds: [aws]"},
		{&Host{Clouds: []Cloud{{Name: "aws", Owners: Owners{"bob"}}}}, credentials, `{"url": "https://sqs.eu-central-1.amazonaws.com/", "auth": {"aws": {"service": "sqs"}}}`, "clouds: [{cloud: aws, owners: [bob, ann]}]"},
		{gcp, credentials, `{"url": "https://sqs.eu-central-1.amazonaws.com/", "auth": {"aws": {"service": "sqs"}}}`, "does not allow to act"},
		{onAWS, map[string]string{"AWS_EC2_METADATA_DISABLED": "true"}, `{"url": "https://sqs.eu-central-1.amazonaws.com/", "auth": {"aws": {"service": "sqs"}}}`, "no credentials of AWS: neither AWS_ACCESS_KEY_ID"},
		{onAWS, credentials, `{"url": "https://example.org/", "auth": {"aws": {"service": "sqs"}}}`, "auth.aws.region is missing"},
		{onAWS, credentials, `{"url": "http://sqs.eu-central-1.amazonaws.com/", "auth": {"aws": {"service": "sqs"}}}`, "https only"},
		{onAWS, credentials, `{"url": "${args.url}", "auth": {"aws": {"service": "sqs"}}}`, "https only"},
		{onAWS, credentials, `{"url": "https://h/", "auth": {"aws": {"service": "S Q S"}}}`, "auth.aws.service: found"},
		{onAWS, credentials, `{"url": "https://h/", "auth": {"aws": {"service": "sqs", "region": "a b"}}}`, "auth.aws.region: found"},
		{onAWS, nil, `{"url": "https://pubsub.googleapis.com/", "auth": {"gcp": {"token": "access"}}}`, "in the cloud gcp"},
		{gcp, nil, `{"url": "https://evil.example/googleapis.com", "auth": {"gcp": {"token": "access"}}}`, "sent to hosts of googleapis.com only"},
		{gcp, nil, `{"url": "https://evilgoogleapis.com/", "auth": {"gcp": {"token": "access"}}}`, "sent to hosts of googleapis.com only"},
		{gcp, nil, `{"url": "https://h/", "auth": {"gcp": {"token": "acess"}}}`, `auth.gcp.token: found "acess", want access or identity`},
		{gcp, nil, `{"url": "https://h/", "auth": {"gcp": {"token": "access", "audience": "x"}}}`, "auth.gcp.audience: only an identity"},
		{gcp, nil, `{"url": "https://h/", "auth": {"gcp": {"token": "access"}, "bearer": "${secret:X}"}}`, "exactly one of"},
	} {
		x, got := cloud(t, c.host, c.env)
		r := attempt(c.spec)
		r.Task.Run.Args = `{"url": "http://sqs.eu-central-1.amazonaws.com/"}`
		if _, err := x.Execute(t.Context(), r); err == nil || !strings.Contains(err.Error(), c.want) || len(got()) > 0 {
			t.Errorf("%s: %v\nwant %s", c.spec, err, c.want)
		}
	}
}

// TestHTTPTokensOfGoogle: dbjobs itself asks the metadata server, also if jobs may not connect to it.
func TestHTTPTokensOfGoogle(t *testing.T) {
	server, asked := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		if strings.HasSuffix(r.URL.Path, "/token") {
			_, _ = w.Write([]byte(`{"access_token":"ya29.t0ken","expires_in":3599,"token_type":"Bearer"}`))
			return
		}
		_, _ = w.Write([]byte("eyJ." + r.URL.Query().Get("audience") + "\n"))
	})
	env := map[string]string{"GCE_METADATA_HOST": server.Listener.Addr().String()}
	for spec, want := range map[string]string{
		`{"url": "https://pubsub.googleapis.com/v1/x", "json": {}, "auth": {"gcp": {"token": "access"}}}`:                    "Bearer ya29.t0ken",
		`{"url": "https://a.run.app/x?y", "auth": {"gcp": {"token": "identity"}}}`:                                           "Bearer eyJ.https://a.run.app",
		`{"url": "https://a.run.app/x", "auth": {"gcp": {"token": "identity", "audience": "https://other.example/?a=b&c"}}}`: "Bearer eyJ.https://other.example/?a=b&c",
		`{"url": "https://a.run.app/x", "auth": {"gcp": {"token": "identity", "audience": "https://${job}.example"}}}`:       "Bearer eyJ.https://rollup.example",
	} {
		x, got := cloud(t, &Host{Clouds: []Cloud{{Name: "gcp"}}}, env)
		if _, err := x.Execute(t.Context(), attempt(spec)); err != nil {
			t.Errorf("%s: %v", spec, err)
		} else if a := got()[0].header.Get("Authorization"); a != want {
			t.Errorf("%s: %s", spec, a)
		}
	}
	for _, r := range asked() {
		if r.header.Get("Metadata-Flavor") != "Google" || !strings.HasPrefix(r.uri, "/computeMetadata/v1/instance/service-accounts/default/") {
			t.Errorf("%+v", r)
		}
	}
	other, _ := receiver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("geheim")) })
	x, got := cloud(t, &Host{Clouds: []Cloud{{Name: "gcp"}}}, map[string]string{"GCE_METADATA_HOST": other.Listener.Addr().String()})
	if _, err := x.Execute(t.Context(), attempt(`{"url": "https://a.run.app/x", "auth": {"gcp": {"token": "identity"}}}`)); err == nil || strings.Contains(err.Error(), "geheim") || len(got()) > 0 {
		t.Error(err)
	}
}

// TestHTTPChecksCertificates: nothing is sent to a server that cannot prove its identity.
func TestHTTPChecksCertificates(t *testing.T) {
	plain, got := receiver(t, nil)
	s := httptest.NewTLSServer(plain.Config.Handler)
	defer s.Close()
	_, err := execute(t, loopback(nil), `{"url": "`+s.URL+`"}`)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || len(got()) > 0 {
		t.Error(err)
	}
}
