package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// registry accepts images as the distribution specification of OCI says: each blob by its digest, then the manifest. It
// refuses the manifest while a blob that it names is missing. Only ann can log in.
type registry struct {
	host    string
	mu      sync.Mutex
	uploads map[string][]byte
	blobs   map[string][]byte
	tags    map[string][]byte // manifests, by path:tag
}

func startRegistry(t *testing.T) *registry {
	r := &registry{uploads: map[string][]byte{}, blobs: map[string][]byte{}, tags: map[string][]byte{}}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.host = s.Listener.Addr().String()
	return r
}

// config returns a folder with Docker's configuration, which has a login.
func (r *registry) config(t *testing.T, login string) string {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, r.host, base64.StdEncoding.EncodeToString([]byte(login)))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if user, password, _ := req.BasicAuth(); user != "ann" || password != "geheim" {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, _ := io.ReadAll(req.Body)
	rest, last := path.Split(req.URL.Path)
	switch at, kind := path.Split(path.Clean(rest)); {
	case req.URL.Path == "/v2/":
	case req.Method == http.MethodPost && kind == "uploads":
		id := fmt.Sprintf("upload-%d", len(r.uploads)+1)
		r.uploads[id] = []byte{}
		w.Header().Set("Location", strings.TrimSuffix(req.URL.Path, "/")+"/"+id)
		w.WriteHeader(http.StatusAccepted)
	case req.Method == http.MethodPatch && r.uploads[last] != nil:
		r.uploads[last] = append(r.uploads[last], body...)
		w.Header().Set("Location", req.URL.Path)
		w.WriteHeader(http.StatusAccepted)
	case req.Method == http.MethodPut && r.uploads[last] != nil:
		text := append(r.uploads[last], body...)
		if digest := req.URL.Query().Get("digest"); digest == digestOf(text) {
			r.blobs[digest] = text
			w.WriteHeader(http.StatusCreated)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
	case req.Method == http.MethodPut && kind == "manifests":
		var m struct{ Config, Layers json.RawMessage }
		if json.Unmarshal(body, &m) != nil || !r.known(m.Config) || !r.known(m.Layers) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.tags[strings.TrimPrefix(path.Clean(at), "/v2/")+":"+last] = body
		w.WriteHeader(http.StatusCreated)
	case kind == "blobs" && r.blobs[last] != nil:
		_, _ = w.Write(r.blobs[last])
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// known reports whether all blobs that a part of a manifest names are there.
func (r *registry) known(part json.RawMessage) bool {
	var list []struct{ Digest string }
	if json.Unmarshal(part, &list) != nil {
		list = append(list[:0], struct{ Digest string }{})
		if json.Unmarshal(part, &list[0]) != nil {
			return false
		}
	}
	for _, d := range list {
		if r.blobs[d.Digest] == nil {
			return false
		}
	}
	return len(list) > 0
}

func digestOf(text []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(text)) }

// has compares the image that was pushed under a tag with the image that was packed.
func (r *registry) has(t *testing.T, tag string, c *container) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	manifest := r.tags[tag]
	if manifest == nil || !bytes.Contains(c.archive, manifest) {
		t.Fatalf("%s is not the manifest that was packed; there are %d tags", tag, len(r.tags))
	}
	for digest, text := range r.blobs {
		if !bytes.Contains(c.archive, text) {
			t.Errorf("%s was not packed", digest)
		}
	}
}
