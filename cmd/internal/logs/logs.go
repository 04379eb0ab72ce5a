// Package logs writes log lines in the form that the platform reads: as text for people, as JSON, or as JSON with
// the members that have a meaning in Google Cloud's logging.
package logs

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/dbjobs/dbjobs/cmd/internal/visible"
)

// The formats.
const (
	Text = "text"
	JSON = "json"
	GCP  = "gcp"
)

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

// Default returns the format that the platform reads: JSON in Lambda, Google's in Cloud Run, and text elsewhere.
func Default(env Lookup) string {
	for _, v := range [][2]string{{"AWS_LAMBDA_RUNTIME_API", JSON}, {"K_SERVICE", GCP}, {"CLOUD_RUN_JOB", GCP}} {
		if value, _ := env(v[0]); value != "" {
			return v[1]
		}
	}
	return Text
}

// Check returns an error if there is no such format.
func Check(format string) error {
	switch format {
	case Text, JSON, GCP:
		return nil
	}
	return fmt.Errorf("found %q, want text, json or gcp", format)
}

// Handler writes lines of the level or of a higher one. Times are in UTC. scrub removes secrets before the text is
// encoded, because an encoded secret looks different.
func Handler(w io.Writer, format string, level slog.Level, scrub func(string) string) slog.Handler {
	hide := func(groups []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindString {
			a.Value = slog.StringValue(scrub(a.Value.String()))
		} else if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(scrub(err.Error()))
		} else if len(groups) == 0 && a.Key == slog.TimeKey {
			a.Value = slog.TimeValue(a.Value.Time().UTC())
		}
		return a
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: hide}
	switch format {
	case JSON:
		return slog.NewJSONHandler(escaping{w}, o)
	case GCP:
		o.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr { return forGoogle(groups, hide(groups, a)) }
		return slog.NewJSONHandler(escaping{w}, o)
	}
	return slog.NewTextHandler(w, o)
}

// escaping writes lines of JSON that cannot control a terminal. A character that is not printable is written as an
// escape such as \u0085, which has the same meaning. The encoder leaves most of these characters as they are. The
// text format quotes them in any case.
type escaping struct{ w io.Writer }

func (e escaping) Write(line []byte) (int, error) {
	_, err := e.w.Write(visible.JSON(line))
	return len(line), err
}

// labels is the member whose values Google Cloud's logging indexes.
const labels = "logging.googleapis.com/labels"

// forGoogle uses the names of Google Cloud's structured logging: severity, message, and labels for the
// trigger's name.
func forGoogle(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.LevelKey:
		level := fmt.Sprint(a.Value.Any())
		return slog.String("severity", strings.Replace(level, "WARN", "WARNING", 1))
	case slog.MessageKey:
		return slog.String("message", a.Value.String())
	case "name":
		return slog.Group(labels, slog.String("dbjobs_name", a.Value.String()))
	}
	return a
}
