// Package bucket reads objects of Amazon S3 and of Google Cloud Storage: one request for one object, with the
// login of the process. It lists nothing and writes nothing.
package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/platform"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
	"github.com/dbjobs/dbjobs/tick/executor/gcp"
)

// patience is the longest time that reading an object may take.
const patience = 30 * time.Second

// Reader reads objects.
type Reader struct {
	Env     func(name string) (value string, found bool)
	Secrets *secret.Known // learns the tokens that the platform gives
	Now     func() time.Time
}

// stores has the kinds of stores, by the scheme of an object's URL.
var stores = map[string]func(Reader, context.Context, Object, int64) ([]byte, error){
	"s3": Reader.s3,
	"gs": Reader.gs,
}

// Object is the place of an object.
type Object struct{ scheme, bucket, key string }

func (o Object) String() string { return o.scheme + "://" + o.bucket + "/" + o.key }

// Is reports whether a path is the URL of an object.
func Is(path string) bool {
	scheme, _, found := strings.Cut(path, "://")
	return found && stores[scheme] != nil
}

var validBucket = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`)

// Parse reads the URL of an object. It refuses a key with a part, such as two dots, because of which some store or
// proxy could take the key for another one.
func Parse(path string) (o Object, err error) {
	scheme, rest, _ := strings.Cut(path, "://")
	o.scheme = scheme
	o.bucket, o.key, _ = strings.Cut(rest, "/")
	switch parts := strings.Split(o.key, "/"); {
	case !validBucket.MatchString(o.bucket):
		return o, fmt.Errorf("found the bucket %.80q, want %s://BUCKET/KEY", o.bucket, scheme)
	case strings.HasSuffix(path, "/") || o.key == "":
		return o, fmt.Errorf("%.200q is no object; want %s://BUCKET/KEY of one", path, scheme)
	case len(o.key) > 1024 || slices.Contains(parts, "") || slices.Contains(parts, ".") || slices.Contains(parts, ".."):
		return o, fmt.Errorf("%.200q: a key has at most 1024 bytes, and no part that is empty, a dot or two", path)
	}
	return o, nil
}

// Allowed reports whether a setting names an object. The setting is a list with commas. Each entry is an object,
// or a URL with a slash at its end, below which all objects are allowed.
func Allowed(path, setting string) bool {
	for allowed := range strings.SplitSeq(setting, ",") {
		allowed = strings.TrimSpace(allowed)
		if allowed != "" && (path == allowed || strings.HasSuffix(allowed, "/") && strings.Count(allowed, "/") > 2 && strings.HasPrefix(path, allowed)) {
			return true
		}
	}
	return false
}

// Read reads an object, at most this many bytes of it.
func (r Reader) Read(ctx context.Context, o Object, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := stores[o.scheme](r, ctx, o, most)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w%s", o, err, hint(err, o.scheme))
	}
	return text, nil
}

// hint returns what to do about a refusal.
func hint(err error, scheme string) string {
	refused, ok := errors.AsType[*platform.RefusedError](err)
	switch {
	case ok && refused.Status == http.StatusNotFound:
		return "; there is no such object"
	case ok && refused.Status == http.StatusForbidden && scheme == "s3":
		return "; allow s3:GetObject on it (and kms:Decrypt, if a key of yours encrypts it); without s3:ListBucket, an object that is not there is refused in the same way"
	case ok && (refused.Status == http.StatusForbidden || refused.Status == http.StatusUnauthorized):
		return "; allow storage.objects.get on it (roles/storage.objectViewer)"
	}
	return ""
}

func (r Reader) value(name string) string {
	v, _ := r.Env(name)
	return v
}

var validRegion = lazyregexp.New(`^[a-z]{2,4}(-[a-z0-9]+)+$`)

// s3 is GetObject. If the bucket is in another region than the process, S3 names that region.
func (r Reader) s3(ctx context.Context, o Object, most int64) ([]byte, error) {
	region := cmp.Or(r.value("AWS_REGION"), r.value("AWS_DEFAULT_REGION"), "us-east-1")
	source := aws.NewSource(r.Env)
	for moved := false; ; moved = true {
		u, err := r.s3URL(o, region)
		if err != nil {
			return nil, err
		}
		text, err := platform.Call{Method: http.MethodGet, URL: u, Login: platform.AWS(source, region, "s3", r.Secrets, r.Now), Most: most}.Send(ctx)
		refused, ok := errors.AsType[*platform.RefusedError](err)
		if !ok || moved {
			return text, err
		}
		there := refused.Header.Get("X-Amz-Bucket-Region")
		if there == region || !validRegion.MatchString(there) {
			return text, err
		}
		region = there
	}
}

// s3URL has the bucket in the host name, except if a dot in the bucket's name would not fit the certificate, or if
// the API is not Amazon's.
func (r Reader) s3URL(o Object, region string) (*url.URL, error) {
	if !validRegion.MatchString(region) {
		return nil, fmt.Errorf("AWS_REGION: found %.40q, want a region, such as eu-central-1", region)
	}
	domain := "s3." + region + "." + aws.Domain(region)
	other, variable := aws.Lookup(r.Env).Endpoint("S3")
	if other == "" && !strings.Contains(o.bucket, ".") {
		return &url.URL{Scheme: "https", Host: o.bucket + "." + domain, Path: "/" + o.key}, nil
	}
	u, err := platform.Endpoint(cmp.Or(other, "https://"+domain))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	u.Path = "/" + o.bucket + "/" + o.key
	return u, nil
}

// gs is the method get of Objects, of the JSON API.
func (r Reader) gs(ctx context.Context, o Object, most int64) ([]byte, error) {
	u, err := platform.Endpoint(cmp.Or(r.value("STORAGE_EMULATOR_HOST"), "https://storage.googleapis.com"))
	if err != nil {
		return nil, fmt.Errorf("STORAGE_EMULATOR_HOST: %w", err)
	}
	u.Path, u.RawPath = "/storage/v1/b/"+o.bucket+"/o/"+o.key, "/storage/v1/b/"+o.bucket+"/o/"+strings.ReplaceAll(url.QueryEscape(o.key), "+", "%20")
	u.RawQuery = "alt=media"
	return platform.Call{Method: http.MethodGet, URL: u, Login: platform.GCP(gcp.Lookup(r.Env), r.Secrets), Most: most}.Send(ctx)
}
