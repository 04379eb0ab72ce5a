package bucket

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// store answers like GetObject of S3 and Objects: get of Cloud Storage, as their documentation describes them: the
// credentials of a request, the objects that exist, and the refusals. It is the S3 of eu-central-1.
type store struct {
	*httptest.Server
	objects map[string]string // by bucket/key
	away    map[string]string // the regions of buckets in other regions
	fail    []int             // statuses of the next answers
	asked   int
	token   string
}

func startStore(t *testing.T) *store {
	s := &store{objects: map[string]string{}, away: map[string]string{}, token: "ya29.t0ken"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /computeMetadata/v1/instance/service-accounts/default/token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", cmp.Or(r.Header.Get("Metadata-Flavor"), "none"))
		_, _ = fmt.Fprint(w, `{"access_token":"ya29.t0ken"}`)
	})
	mux.HandleFunc("GET /storage/v1/b/{bucket}/o/{key}", s.gs)
	mux.HandleFunc("/", s.s3)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *store) failing(w http.ResponseWriter) bool {
	if s.asked++; len(s.fail) == 0 {
		return false
	}
	w.WriteHeader(s.fail[0])
	s.fail = s.fail[1:]
	return true
}

// s3 answers GetObject by path: /BUCKET/KEY.
func (s *store) s3(w http.ResponseWriter, r *http.Request) {
	if s.failing(w) {
		return
	}
	refuse := func(status int, code string) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>geheim</Message><Resource>%s</Resource></Error>`, code, r.URL.Path)
	}
	bucket, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	region := cmp.Or(s.away[bucket], "eu-central-1")
	again := http.Header{}
	at := &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.EscapedPath()}
	aws.Sign(again, r.Method, at, nil, aws.Credentials{KeyID: "AKID", Secret: "geheim", SessionToken: "token"}, region, "s3", noon)
	switch text, there := s.objects[strings.TrimPrefix(r.URL.Path, "/")]; {
	case !strings.Contains(r.Header.Get("Authorization"), "/20261124/"+region+"/s3/aws4_request"):
		w.Header().Set("X-Amz-Bucket-Region", region)
		refuse(http.StatusMovedPermanently, "PermanentRedirect")
	case r.Header.Get("Authorization") != again.Get("Authorization") || r.Header.Get("X-Amz-Content-Sha256") != again.Get("X-Amz-Content-Sha256"):
		refuse(http.StatusForbidden, "SignatureDoesNotMatch")
	case bucket == "closed":
		refuse(http.StatusForbidden, "AccessDenied")
	case !there:
		refuse(http.StatusNotFound, "NoSuchKey")
	default:
		_, _ = fmt.Fprint(w, text)
	}
}

func (s *store) gs(w http.ResponseWriter, r *http.Request) {
	if s.failing(w) {
		return
	}
	refuse := func(status int, reason string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error": {"code": %d, "message": "geheim", "errors": [{"message": "geheim", "domain": "global", "reason": %q}]}}`, status, reason)
	}
	switch text, there := s.objects[r.PathValue("bucket")+"/"+r.PathValue("key")]; {
	case r.Header.Get("Authorization") != "Bearer "+s.token:
		refuse(http.StatusUnauthorized, "authError")
	case r.PathValue("bucket") == "closed":
		refuse(http.StatusForbidden, "forbidden")
	case r.URL.RawQuery != "alt=media":
		refuse(http.StatusBadRequest, "the metadata was asked for")
	case !there:
		refuse(http.StatusNotFound, "notFound")
	default:
		_, _ = fmt.Fprint(w, text)
	}
}

func (s *store) reader() Reader {
	vars := map[string]string{"AWS_ENDPOINT_URL_S3": s.URL, "STORAGE_EMULATOR_HOST": s.URL, "GCE_METADATA_HOST": s.Listener.Addr().String(), "AWS_REGION": "eu-central-1",
		"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "geheim", "AWS_SESSION_TOKEN": "token"}
	return Reader{Env: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, Secrets: &secret.Known{}, Now: func() time.Time { return noon }}
}

// Objects are read whole, or up to a limit, whatever characters their keys have. An object that is refused for a while
// is read in the end.
func TestRead(t *testing.T) {
	keys := []string{"jobs.yaml", "jobs/night shift+1.yaml", "jobs/ä=*~(1).yaml", "a/b/c%2Fd.yaml"}
	for _, scheme := range []string{"s3", "gs"} {
		for _, key := range keys {
			t.Run(scheme+" "+key, func(t *testing.T) {
				t.Parallel()
				s := startStore(t)
				s.objects["acme-config/"+key], s.fail = "jobs: {} # "+key, []int{503, 429}
				if text, err := read(t, s.reader(), scheme+"://acme-config/"+key, 1000); err != nil || text != "jobs: {} # "+key || s.asked != 3 {
					t.Errorf("%q, %v, asked %d times", text, err, s.asked)
				}
				if text, err := read(t, s.reader(), scheme+"://acme-config/"+key, 4); err != nil || text != "jobs" {
					t.Errorf("of more than 4 bytes: %q, %v", text, err)
				}
			})
		}
	}
}

func read(t *testing.T, r Reader, path string, most int64) (string, error) {
	t.Helper()
	o, err := Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.Read(t.Context(), o, most)
	return string(text), err
}

// A bucket of another region is found there, and only one further request is made.
func TestReadElsewhere(t *testing.T) {
	s := startStore(t)
	s.objects["far/jobs.yaml"], s.away["far"] = "jobs: {}", "us-east-2"
	if text, err := read(t, s.reader(), "s3://far/jobs.yaml", 100); err != nil || text != "jobs: {}" || s.asked != 2 {
		t.Errorf("%q, %v, asked %d times", text, err, s.asked)
	}
}

// An error names the problem and what to do, and quotes no answer.
func TestReadRefused(t *testing.T) {
	s := startStore(t)
	for path, want := range map[string]string{
		"s3://acme-config/absent": "status 404: NoSuchKey; there is no such object",
		"s3://closed/jobs.yaml":   "status 403: AccessDenied; allow s3:GetObject",
		"gs://acme-config/absent": "status 404; there is no such object",
		"gs://closed/jobs.yaml":   "status 403; allow storage.objects.get",
	} {
		s.asked = 0
		if _, err := read(t, s.reader(), path, 100); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "read "+path+": ") || strings.Contains(err.Error(), "geheim") || s.asked != 1 {
			t.Errorf("%s: %v, asked %d times; want %q", path, err, s.asked, want)
		}
	}
	s.token = "another"
	if _, err := read(t, s.reader(), "gs://acme-config/jobs.yaml", 100); err == nil || !strings.Contains(err.Error(), "status 401; allow") {
		t.Error(err)
	}
	s.fail, s.asked = []int{500, 500, 500, 500}, 0
	if _, err := read(t, s.reader(), "s3://acme-config/jobs.yaml", 100); err == nil || s.asked != 3 {
		t.Errorf("%v, asked %d times", err, s.asked)
	}
}

// The addresses at which objects are requested, without another API.
func TestWhere(t *testing.T) {
	for path, want := range map[string][2]string{
		"s3://acme-config/a b.yaml":       {"eu-central-1", "https://acme-config.s3.eu-central-1.amazonaws.com/a%20b.yaml"},
		"s3://config.acme.com/jobs/a.yml": {"us-east-1", "https://s3.us-east-1.amazonaws.com/config.acme.com/jobs/a.yml"},
		"s3://acme-config/a.yaml":         {"cn-north-1", "https://acme-config.s3.cn-north-1.amazonaws.com.cn/a.yaml"},
		"s3://acme-sovereign/a.yaml":      {"eusc-de-east-1", "https://acme-sovereign.s3.eusc-de-east-1.amazonaws.eu/a.yaml"},
		"s3://acme-secret/a.yaml":         {"us-iso-east-1", "https://acme-secret.s3.us-iso-east-1.c2s.ic.gov/a.yaml"},
	} {
		o, err := Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		u, err := Reader{Env: func(string) (string, bool) { return "", false }}.s3URL(o, want[0])
		if err != nil || u.String() != want[1] {
			t.Errorf("%s: %v, %v, want %s", path, u, err, want[1])
		}
	}
}

func TestParse(t *testing.T) {
	for path, want := range map[string]string{
		"s3://acme-config/jobs.yaml": "", "gs://acme_config/a/b": "",
		"s3://Acme/jobs.yaml": "bucket", "s3:///jobs.yaml": "bucket", "s3://a@b.example/jobs.yaml": "bucket", "s3://x:1/jobs.yaml": "bucket",
		"s3://acme-config": "no object", "s3://acme-config/jobs/": "no object",
		"s3://acme-config/a/../b": "no part", "s3://acme-config/a//b": "no part", "s3://acme-config/./b": "no part",
	} {
		o, err := Parse(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && o.String() != path {
			t.Errorf("%s: %v, %v, want %q", path, o, err, want)
		}
	}
	for path, is := range map[string]bool{"s3://a": true, "gs://a": true, "-": false, "jobs.yaml": false, "s3:a": false, "https://a/b": false} {
		if Is(path) != is {
			t.Errorf("%s is an object: %v", path, !is)
		}
	}
}

func TestAllowed(t *testing.T) {
	const path = "s3://acme-config/jobs/a.yaml"
	for setting, want := range map[string]bool{
		"": false, path: true, "s3://acme-config/": true, "s3://acme-config/jobs/": true, "gs://x/, s3://acme-config/jobs/": true,
		"s3://acme-config": false, "s3://acme-config/jobs": false, "s3://acme-config/job": false, "s3://": false, "s3:/": false, "/": false,
		"gs://acme-config/": false, "s3://acme-config/jobs/b.yaml": false,
	} {
		if Allowed(path, setting) != want {
			t.Errorf("%q allows it: %v", setting, !want)
		}
	}
}
