package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestSecretsAreHiddenBeforeTheyAreEncoded: encoded, this one reads otherwise.
func TestSecretsAreHiddenBeforeTheyAreEncoded(t *testing.T) {
	const secret = "pa\"ss\\word"
	scrub := func(s string) string { return strings.ReplaceAll(s, secret, "[hidden]") }
	for _, format := range []string{Text, JSON, GCP} {
		var b bytes.Buffer
		slog.New(Handler(&b, format, slog.LevelInfo, scrub)).Error("said "+secret, "error", errors.New("with "+secret), slog.Group("more", "text", secret), "name", secret)
		if strings.Contains(b.String(), "word") || strings.Count(b.String(), "[hidden]") != 4 {
			t.Errorf("%s: %s", format, &b)
		}
	}
}

// TestGoogle holds a line against the members of Google Cloud's structured logging.
func TestGoogle(t *testing.T) {
	for level, want := range map[slog.Level]string{slog.LevelDebug: "DEBUG", slog.LevelInfo: "INFO", slog.LevelWarn: "WARNING", slog.LevelError: "ERROR"} {
		var b bytes.Buffer
		slog.New(Handler(&b, GCP, slog.LevelDebug, func(s string) string { return s })).Log(t.Context(), level, "pass", "name", "nightly", "decided", 3)
		var line struct {
			Severity, Message string
			Time              time.Time
			Labels            map[string]string `json:"logging.googleapis.com/labels"`
			Decided           int
		}
		if err := json.Unmarshal(b.Bytes(), &line); err != nil || line.Severity != want || line.Message != "pass" || line.Labels["dbjobs_name"] != "nightly" || line.Decided != 3 {
			t.Errorf("%v: %s", err, &b)
		}
		if line.Time.Location() != time.UTC || line.Time.IsZero() {
			t.Errorf("the time is %v", line.Time)
		}
	}
}

func TestDefault(t *testing.T) {
	for name, want := range map[string]string{"AWS_LAMBDA_RUNTIME_API": JSON, "CLOUD_RUN_JOB": GCP, "K_SERVICE": GCP, "HOME": Text} {
		got := Default(func(n string) (string, bool) {
			if n == name {
				return "x", true
			}
			return "", false
		})
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
