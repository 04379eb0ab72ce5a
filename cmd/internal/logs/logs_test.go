package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
)

// TestSecretsAreHiddenBeforeTheyAreEncoded: this secret reads differently when it is encoded.
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

// TestGoogle compares a line with the members of Google Cloud's structured logging.
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

// No format sends control sequences to a terminal, and JSON keeps the value.
func TestControlCharactersAreEscaped(t *testing.T) {
	const name = "a\x1b[2J\u009b31m\u202egpj.exe\u2066\u200b\x7f\U000e0041 é 日"
	for _, format := range []string{Text, JSON, GCP} {
		var b bytes.Buffer
		slog.New(Handler(&b, format, slog.LevelInfo, func(s string) string { return s })).Info(name, "job", name, name, "key")
		line := strings.TrimSuffix(b.String(), "\n")
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Errorf("%s has %U: %q", format, r, line)
			}
		}
		if !strings.Contains(line, "é 日") {
			t.Errorf("%s: %s", format, line)
		}
		if format == Text {
			continue
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil || got["job"] != name || got[name] != "key" {
			t.Errorf("%s: %v: %q", format, err, got)
		}
	}
}
