package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
)

// A server that sends more than its answer, such as a body after 204, may send back what it got. net/http prints the
// beginning of that with package log: it is no part of what a pass prints, and may hold a secret.
func TestWhatAServerSendsBesideItsAnswerIsNotPrinted(t *testing.T) {
	t.Parallel()
	const kept = "vK9-tokenQwJz2mR5"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/later" { // the process is still there when the first server has sent everything
			time.Sleep(300 * time.Millisecond)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "HTTP/1.1 204 No Content\r\n\r\nyou sent %s", r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	home := t.TempDir()
	file := filepath.Join(home, "jobs.yaml")
	text := fmt.Sprintf(`jobs:
  tell:
    repeat_after: 1h
    steps:
      - http: {url: "%s", headers: {authorization: "Bearer ${secret:TOKEN}"}}
      - http: "%[1]s/later"
`, s.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) string {
		cmd := exec.Command(program(t), args...)
		cmd.Env = []string{"HOME=" + home, "GORACE=" + os.Getenv("GORACE"), settings.URLVariable + "=sqlite:" + filepath.Join(home, "jobs.db"),
			host.Variable + "=addresses: [127.0.0.0/8]", host.SecretPrefix + "TOKEN=" + kept}
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, said)
		}
		return string(said)
	}
	do("migrate")
	do("apply", "-f", file)
	if said := do("tick", "--quiet"); said != "" {
		t.Errorf("a quiet pass in which all went well printed %q", said)
	}
	if said := do("run", "list"); !strings.Contains(said, "succeeded") {
		t.Errorf("the run has not succeeded: %s", said)
	}
}

// In a function of Lambda, the messages of the runtime library are printed, and those of net/http are not.
func TestLibraryLog(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for _, message := range []string{"{\"errorMessage\": \"known\"}\n", "Unsolicited response received on idle HTTP channel starting with \"Bearer x\"; err=<nil>\n",
		"http2: header list too large\n", "net/http: invalid byte\n", "the runtime has a problem\n"} {
		if n, err := (libraryLog{&b}).Write([]byte(message)); n != len(message) || err != nil {
			t.Errorf("%q: %d, %v", message, n, err)
		}
	}
	if b.String() != "the runtime has a problem\n" {
		t.Errorf("printed %q", b.String())
	}
}
