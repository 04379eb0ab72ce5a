package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/metrics"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
)

// The values of --metrics that are not files.
const (
	noMetrics       = "none"
	embeddedMetrics = "emf"
)

// defaultMetrics is the default of --metrics. In a Lambda function, CloudWatch reads the log.
func defaultMetrics(env settings.Lookup) string {
	if api, _ := env(runtimeAPIVariable); api != "" {
		return embeddedMetrics
	}
	return noMetrics
}

// metricsVariable sets --metrics.
const metricsVariable = "DBJOBS_METRICS"

// nameInPath stands for the name of the trigger in the path of a file of metrics. A file has the figures of the pass that ended
// last, so triggers with one setting need it.
const nameInPath = "${name}"

func checkMetrics(value string) error {
	path, file := strings.CutSuffix(value, ".prom")
	switch {
	case value == noMetrics || value == embeddedMetrics:
		return nil
	case !file:
		return badInput("--metrics or %s: found %s, want none, emf, or the path of a file that ends in .prom", metricsVariable, shown(value))
	case strings.Contains(strings.ReplaceAll(path, nameInPath, ""), "${"):
		return badInput("--metrics or %s: found %s, want no other reference than %s", metricsVariable, shown(value), nameInPath)
	}
	return nil
}

// checkMetricsOfServe refuses what would let the workers of serve replace the figures of its ticks.
func (c *cli) checkMetricsOfServe() error {
	value, _ := c.env(metricsVariable)
	switch {
	case value == "":
		return nil
	case strings.HasSuffix(value, ".prom") && !strings.Contains(value, nameInPath):
		return badInput("%s: the ticks and the workers of serve need files of their own; put %s into the path, such as dbjobs-%[2]s.prom", metricsVariable, nameInPath)
	}
	return checkMetrics(value)
}

// logger writes to standard error, without secrets.
func (c *cli) logger(format string, level slog.Level) *slog.Logger {
	return slog.New(logs.Handler(c.stderr, format, level, c.scrub))
}

// writeMetrics writes the figures of a pass into the file that --metrics names, if it names one. beside names the other databases that
// the same trigger serves.
func (c *cli) writeMetrics(where string, p metrics.Pass, beside ...string) {
	if !strings.HasSuffix(where, ".prom") {
		return
	}
	where = strings.ReplaceAll(where, nameInPath, fileName(p.Name))
	if bad := metrics.Write(where, p, beside...); bad != nil { // this is no failure of the pass
		c.tell(slog.LevelWarn, "%v", bad)
	}
}

// fileName makes a part of the name of a file of any name. Letters stay as they are: in other alphabets, an escaped name is longer
// than a file's may be.
func fileName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r < utf8.RuneSelf {
			b.WriteString(url.QueryEscape(string(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// failuresMost is how many failed runs the log line of a pass names.
const failuresMost = 10

type failure struct {
	Job   string `json:"job"`
	Run   string `json:"run"`
	State string `json:"state"`
	Error string `json:"error,omitempty"`
}

// logPass writes the log line of a pass, with the error of the pass and its failed runs. It does so if the log
// format is for programs, or if the line contains the metrics.
func (c *cli) logPass(ctx context.Context, p *metrics.Pass, embedded bool, err error) {
	format := c.logFormat
	switch {
	case format == logs.Text && !embedded:
		return
	case format == logs.Text:
		format = logs.JSON
	}
	attrs, r, level := p.Attrs(), &p.Report, slog.LevelInfo
	attrs = append(attrs, c.invocation...)
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	text("database", cmp.Or(p.Database, c.db.Display()))
	text("cut_short", r.CutShort)
	text("ahead_unknown", r.AheadUnknown)
	if !r.NextRun.IsZero() {
		attrs = append(attrs, slog.Time("next_run", r.NextRun.UTC()))
	}
	if !r.WakeAt.IsZero() {
		attrs = append(attrs, slog.Time("wake_at", r.WakeAt.UTC()))
	}
	var failures []failure
	for _, e := range report.Wrong(*r).Runs {
		if len(failures) < failuresMost {
			failures = append(failures, failure{e.Job, e.ID, e.State, c.scrub(e.Error)})
		}
	}
	if len(failures) > 0 {
		attrs = append(attrs, slog.Any("failures", failures))
	}
	if list := c.problems(r); len(list) > 0 {
		attrs = append(attrs, slog.Any("problems", list))
	}
	if len(r.Unserved) > 0 {
		attrs = append(attrs, slog.Any("unserved", r.Unserved))
	}
	if len(r.Untold) > 0 {
		attrs = append(attrs, slog.Any("untold", r.Untold))
	}
	if r.Failed+r.Lost+r.ParkedJobs+r.FailingJobs+r.Ahead+len(r.Unserved)+len(r.Untold) > 0 || r.AheadUnknown != "" {
		level = slog.LevelWarn
	}
	if p.Failed {
		level = slog.LevelError
		text("error", fmt.Sprint(strings.Join(c.explain(exitCode(ctx, err), err), "; ")))
		c.told = c.logFormat != logs.Text
	}
	if embedded {
		attrs = append(attrs, p.Embedded())
	}
	c.logger(format, slog.LevelInfo).LogAttrs(context.Background(), level, "pass", attrs...)
}
