package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
)

// TestManifestsFromBuckets: a function and a command line take a manifest from S3 and from Cloud Storage, if their own
// credentials allow it. An event reaches nothing else in this way. Package bucket has the stores' answers.
func TestManifestsFromBuckets(t *testing.T) {
	c := onPostgres(t)
	const rule = "{rule: every 1h, sql: SELECT 1}\n"
	objects := map[string]string{
		"/acme/jobs/night.yaml":                "jobs:\n  hello: " + rule,
		"/acme/jobs/include.yaml":              "include: [/etc/passwd]\njobs:\n  more: " + rule,
		"/acme/jobs/env.yaml":                  "jobs:\n  env: {rule: every 1h, sql: '${env:AWS_SECRET_ACCESS_KEY}'}\n",
		"/acme/jobs/long.yaml":                 strings.Repeat("# longer than this may be\n", manifest.MaxBytes/20),
		"/acme/other.yaml":                     "jobs:\n  other: " + rule,
		"/storage/v1/b/acme/o/jobs%2Fday.yaml": "jobs:\n  day: " + rule,
		"/storage/v1/b/acme/o/include.yaml":    "include: [/etc/hostname]\njobs:\n  more: " + rule,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		asked := r.Header.Get("Authorization")
		switch text, there := objects[r.URL.EscapedPath()]; {
		case strings.HasPrefix(r.URL.Path, "/computeMetadata/"):
			_, _ = fmt.Fprint(w, `{"access_token": "ya29.t0ken"}`)
		case !strings.HasPrefix(asked, "AWS4-HMAC-SHA256 Credential=") && asked != "Bearer ya29.t0ken":
			w.WriteHeader(http.StatusForbidden)
		case !there:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = fmt.Fprint(w, text)
		}
	}))
	t.Cleanup(s.Close)
	f := c.function("DBJOBS_LAMBDA_ALLOW=apply", "DBJOBS_MANIFESTS=s3://acme/jobs/", "AWS_ENDPOINT_URL_S3="+s.URL)
	if a := answered[report.Applied](f, f.invoke(orderOf("apply", "from", "s3://acme/jobs/night.yaml", "by", "ann"), ample)); a.Manifest != "night" || len(a.Changes) == 0 {
		t.Errorf("applied %+v", a)
	}
	for event, want := range map[string]string{
		orderOf("apply", "from", "s3://acme/other.yaml"):                          "DBJOBS_MANIFESTS",
		orderOf("apply", "from", "gs://acme/jobs/night.yaml"):                     "DBJOBS_MANIFESTS",
		orderOf("apply", "from", "s3://acme/jobs/../other.yaml"):                  "a key has",
		orderOf("apply", "from", "s3://acme/jobs/absent.yaml"):                    "there is no such object",
		orderOf("apply", "from", "s3://acme/jobs/long.yaml"):                      "longer than",
		orderOf("apply", "from", "s3://acme/jobs/include.yaml"):                   "files cannot be included here",
		orderOf("apply", "from", "s3://acme/jobs/env.yaml"):                       "AWS_SECRET_ACCESS_KEY",
		orderOf("apply", "from", "/proc/self/environ"):                            "want an object",
		orderOf("apply", "from", "-"):                                             "standard input",
		orderOf("apply", "from", "s3://acme/jobs/night.yaml", "manifest", "jobs"): "apply needs a manifest",
	} {
		kind, message := f.refused(f.invoke(event, ample))
		if kind != "BadInput" && kind != "PassFailed" || !strings.Contains(message, want) || strings.Contains(message, "geheim") {
			t.Errorf("%s: %s: %s; want %q", event, kind, message, want)
		}
	}
	unset := c.function("DBJOBS_LAMBDA_ALLOW=apply", "AWS_ENDPOINT_URL_S3="+s.URL)
	if kind, message := unset.refused(unset.invoke(orderOf("apply", "from", "s3://acme/jobs/night.yaml"), ample)); kind != "BadInput" || !strings.Contains(message, "DBJOBS_MANIFESTS") {
		t.Errorf("where no bucket is named: %s: %s", kind, message)
	}
	c.env = map[string]string{"STORAGE_EMULATOR_HOST": s.URL, "GCE_METADATA_HOST": s.Listener.Addr().String()}
	c.dbjobs("apply", "-f", "gs://acme/jobs/day.yaml")
	var talk bytes.Buffer
	env := func(name string) (string, bool) { value, set := c.env[name]; return value, set }
	if code := run(t.Context(), []string{"apply", "-f", "gs://acme/include.yaml"}, nil, io.Discard, &talk, env, nil); code != exitUsage || !strings.Contains(talk.String(), "files cannot be included here") {
		t.Errorf("an object that names files: code %d: %s", code, &talk)
	}
	if n := c.number("SELECT count(*) FROM " + c.table("jobs")); n != 2 {
		t.Errorf("there are %d jobs\n%s", n, f.log)
	}
}
