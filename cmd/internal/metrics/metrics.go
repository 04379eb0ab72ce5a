// Package metrics gives the figures of a pass to monitoring, without an agent. They are members of the log line of
// the pass, which CloudWatch reads as metrics if they are marked (the embedded metric format). They are also a
// file that node_exporter's textfile collector reads. Both forms are made from one list.
package metrics

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/wholefile"
	"github.com/dbjobs/dbjobs/tick"
)

// Namespace is the namespace of the metrics in CloudWatch.
const Namespace = "dbjobs"

// Pass has the facts of a pass from which the figures are made.
type Pass struct {
	Name     string        // of the trigger
	Database string        // its name, if a pass serves several; else empty
	Ended    time.Time     // by the host's clock
	Took     time.Duration // with the time to connect
	Failed   bool          // the pass itself has failed; failed jobs are in the report
	Report   tick.Report
}

// A figure is one number. It has the same name in the log line and in CloudWatch. In Prometheus, dbjobs_pass_
// stands before the name.
type figure struct {
	name, help string
	value      any // int or float64
}

// figures returns the list. It leaves out figures that are not known, such as all states if the database has not answered.
func (p Pass) figures() []figure {
	r := &p.Report
	failed := 0
	if p.Failed {
		failed = 1
	}
	list := []figure{
		{"decided", "Jobs for which the pass made a decision.", r.Decided},
		{"made", "Runs made.", r.Made},
		{"started", "Runs started.", r.Started},
		{"succeeded", "Runs that succeeded.", r.Succeeded},
		{"failed", "Runs that have finally failed.", r.Failed},
		{"cancelled", "Runs that were stopped on request, or replaced.", r.Cancelled},
		{"waiting", "Runs that wait for another attempt.", r.Waiting},
		{"missed", "Gaps recorded for nominal times that were missed.", r.Gaps["missed"]},
		{"lost", "Runs whose last delivery never reported back.", r.Lost},
		{"errors", "1 if the pass itself failed or was interrupted.", failed},
		{"duration_seconds", "How long the pass took.", p.Took.Seconds()},
	}
	if !r.StartedAt.IsZero() { // a 0 would end the alarm while the database is away
		list = append(list, figure{"late_seconds", "How long the oldest due time of a job that is not parked had been due when the pass began, or the pass of tick --for that came latest; 0 in a freeze, and counted anew from its end.", r.Late().Seconds()})
	}
	if r.States {
		list = append(list,
			figure{"parked", "Jobs whose definition cannot be used.", r.ParkedJobs},
			figure{"failing_jobs", "Jobs of which a run has failed or was lost, and none has succeeded since.", r.FailingJobs},
			figure{"unserved_jobs", "Jobs of other logins that have been due for more than five minutes.", r.UnservedJobs()},
			figure{"paused_jobs", "Jobs that are paused.", r.Paused},
			figure{"queued_seconds", "How long the oldest run that may be taken has been ready at the end of the pass, in any queue; 0 in a freeze, and counted anew from its end.", r.QueuedFor().Seconds()})
	}
	if !r.NextRun.IsZero() {
		list = append(list, figure{"next_due_seconds", "Time from the end of the pass until something is due next.", r.NextIn().Seconds()})
	}
	return list
}

// Attrs returns the figures as members of a log line.
func (p Pass) Attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("name", p.Name)}
	for _, f := range p.figures() {
		attrs = append(attrs, slog.Any(f.name, f.value))
	}
	return attrs
}

type metric struct{ Name, Unit string }

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []metric
}

// Embedded returns the member that makes CloudWatch read the figures in the same line as metrics, by the name of
// the trigger. If a pass serves several databases, the metrics also exist by name and database; the database is a
// member of the line.
func (p Pass) Embedded() slog.Attr {
	d := directive{Namespace: Namespace, Dimensions: [][]string{{"name"}}}
	if p.Database != "" {
		d.Dimensions = append(d.Dimensions, []string{"name", "database"})
	}
	for _, f := range p.figures() {
		unit := "Count"
		if strings.HasSuffix(f.name, "_seconds") {
			unit = "Seconds"
		}
		d.Metrics = append(d.Metrics, metric{f.name, unit})
	}
	return slog.Any("_aws", struct {
		Timestamp         int64
		CloudWatchMetrics []directive
	}{p.Ended.UnixMilli(), []directive{d}})
}

// prefix stands before the name of a figure in Prometheus.
const prefix = "dbjobs_pass_"

// text writes the figures in the text form that Prometheus and OpenMetrics share. All figures are gauges of the
// last pass, or of the last pass on each database: a process that ends cannot count across passes. old is the text so far. The
// figures of the databases beside that of the pass stay as they are there.
func text(p Pass, old string, beside []string) []byte {
	var names []string
	heads, samples := map[string]string{}, map[string]string{}
	add := func(name, head, sample string) {
		if heads[name] == "" {
			names = append(names, name)
			heads[name] = head
		}
		samples[name] += sample
	}
	at := figure{"timestamp_seconds", "When the pass ended, since 1970.", float64(p.Ended.UnixMilli()) / 1000}
	for _, f := range append(p.figures(), at) {
		add(f.name, fmt.Sprintf("# HELP %s%s %s\n# TYPE %[1]s%[2]s gauge\n", prefix, f.name, f.help), fmt.Sprintf("%s%s{%s} %s\n", prefix, f.name, p.labels(), number(f.value)))
	}
	for _, database := range beside {
		labels, head := "{"+Pass{Name: p.Name, Database: database}.labels()+"} ", ""
		for line := range strings.Lines(old) {
			switch name, _, found := strings.Cut(strings.TrimPrefix(line, prefix), labels); {
			case strings.HasPrefix(line, "# HELP "):
				head = line
			case strings.HasPrefix(line, "# TYPE "):
				head += line
			case found && strings.HasPrefix(head, "# HELP "+prefix+name+" "):
				add(name, head, line)
			}
		}
	}
	var b bytes.Buffer
	for _, name := range names {
		b.WriteString(heads[name] + samples[name])
	}
	b.WriteString("# EOF\n")
	return b.Bytes()
}

// labels distinguish the figures of one pass from those of another.
func (p Pass) labels() string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	text := `name="` + escape.Replace(p.Name) + `"`
	if p.Database != "" {
		text += `,database="` + escape.Replace(p.Database) + `"`
	}
	return text
}

func number(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// Write writes the figures into a file, as wholefile.Write does. On the way, the file has a name that the collector does
// not read. Other users can read a new file, as the collector is one. If the trigger serves several databases, beside has the names of
// the others: their figures in the file stay, because those of a slow pass must not go back behind what later passes have written.
func Write(path string, p Pass, beside ...string) error {
	var old []byte
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && len(beside) > 0 { // what is no file has no content so far
		if old, err = os.ReadFile(path); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	_, err := wholefile.Write(path, 0o644, func(w io.Writer) error {
		_, err := w.Write(text(p, string(old), beside))
		return err
	})
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}
