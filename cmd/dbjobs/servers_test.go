package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dbjobs/dbjobs/tick/executor/mailtest"
)

// servers are the servers of a story other than its database. They start when the story asks for them, and end with it.
type servers struct {
	t    testing.TB
	mail *mailtest.Server

	mu       sync.Mutex
	requests []string
}

// theServers is the key of the servers in the values of a story.
type theServers struct{}

func serversOf(ts *testscript.TestScript) *servers { return ts.Value(theServers{}).(*servers) }

// serveStory starts a mail server and a web server, which has every page but /missing. It puts their addresses into
// MAIL_PORT and WEB_URL.
func serveStory(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: serve")
	}
	s := serversOf(ts)
	s.mail = mailtest.Start(s.t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
		}
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, fmt.Sprintf("%s %s %s %v", r.Method, r.URL, body, err))
	}))
	ts.Defer(web.Close)
	ts.Setenv("MAIL_PORT", strconv.Itoa(s.mail.Port("none")))
	ts.Setenv("WEB_URL", web.URL)
}

// received prints the mails, or the requests, that the servers of a story have got: received mails.
func received(ts *testscript.TestScript, neg bool, args []string) {
	s := serversOf(ts)
	if neg || len(args) != 1 || s.mail == nil {
		ts.Fatalf("usage: received mails|requests, after serve")
	}
	list := s.mail.Mails(s.t)
	if args[0] == "requests" {
		s.mu.Lock()
		defer s.mu.Unlock()
		list = s.requests
	}
	for _, one := range list {
		_, err := fmt.Fprintln(ts.Stdout(), one)
		ts.Check(err)
	}
}

var variableInFile = regexp.MustCompile(`\$[A-Z_]+`)

// fill puts the values of variables into a file that names them as $NAME.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fill FILE")
	}
	text := variableInFile.ReplaceAllStringFunc(ts.ReadFile(args[0]), func(name string) string { return ts.Getenv(name[1:]) })
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
