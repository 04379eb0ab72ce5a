package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLambdaSecretThatCannotBeRead: a failure of Secrets Manager passes, as that of a database does. So the pass is tried again after
// one to two minutes. A refusal does not pass: it waits for somebody, and for the safety trigger.
func TestLambdaSecretThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const variables, one = "DBJOBS_DATABASE_SECRET_ARN=arn:jobs", "DBJOBS_CONFIG=database: {url_aws_secret: 'arn:jobs'}"
	const several = "DBJOBS_CONFIG=databases: {shop: {url_aws_secret: 'arn:jobs'}, post: {url_aws_secret: 'arn:jobs'}}"
	for _, c := range []struct {
		name, setting string
		status        int
		text, kind    string
		alarms        int
	}{
		{"it fails", variables, http.StatusInternalServerError, "InternalServiceError", "Unreachable", 1},
		{"it throttles", one, http.StatusBadRequest, "ThrottlingException: Rate exceeded", "Unreachable", 1},
		{"it fails for several databases", several, http.StatusInternalServerError, "InternalServiceError", "Unreachable", 2},
		{"it is not ready", one, http.StatusBadRequest, "not ready to serve traffic, please wait", "Unreachable", 1},
		{"it refuses", variables, http.StatusForbidden, "AccessDeniedException", "BadInput", 0},
		{"it refuses for several databases", several, http.StatusBadRequest, "ResourceNotFoundException", "BadInput", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			extension := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, c.text, c.status) }))
			t.Cleanup(extension.Close)
			_, port, _ := net.SplitHostPort(strings.TrimPrefix(extension.URL, "http://"))
			ring, rings := filepath.Join(t.TempDir(), "ring"), filepath.Join(t.TempDir(), "rings")
			if err := writeProgram(ring, 0o700, strings.NewReader(fmt.Sprintf("#!/bin/sh\necho $1 >>%s\n", rings))); err != nil {
				t.Fatal(err)
			}
			f := startFunction(t, c.setting, "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT="+port, "DBJOBS_WAKE=exec:"+ring)
			began := time.Now()
			if kind, message := f.refused(f.invoke("{}", ample)); kind != c.kind || !strings.Contains(message, "arn:jobs") {
				t.Errorf("%s: %s, want %s", kind, message, c.kind)
			}
			text, err := os.ReadFile(rings)
			if err != nil && c.alarms > 0 {
				t.Error(err)
			}
			alarms := strings.Fields(string(text))
			for _, alarm := range alarms {
				if at, err := time.Parse(time.RFC3339, alarm); err != nil || at.Before(began.Add(time.Minute)) || at.After(time.Now().Add(2*time.Minute)) {
					t.Errorf("an alarm at %s, %v, for a pass that began at %s", alarm, err, began)
				}
			}
			if len(alarms) != c.alarms {
				t.Errorf("alarms %q, want %d", alarms, c.alarms)
			}
		})
	}
}
