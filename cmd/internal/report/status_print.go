package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// MostOfKind is the highest limit of status.
const MostOfKind = 1000

// Print writes a table for each kind that has rows. At the end, it writes what there is to do.
func (s *Status) Print(w io.Writer) error {
	p := &sections{w: w}
	p.table(len(s.Triggers), []string{"TRIGGER", "LAST PASS", "AGO", "TOOK", "BY"}, func(t *table) {
		for _, v := range s.Triggers {
			t.row(v.Name, Instant(v.LastAt), span(s.Now.Sub(v.LastAt)), took(v.Took), v.Holder)
		}
	})
	p.raise(len(s.Triggers), s.TriggersMore)
	p.table(len(s.Silences), []string{"SILENT", "FOR", "SINCE", "UNTIL"}, func(t *table) {
		for _, v := range s.Silences {
			end := v.Until
			if end.IsZero() {
				end = s.Now
			}
			t.row(v.Trigger, span(end.Sub(v.From)), Instant(v.From), cmp.Or(Instant(v.Until), "now"))
		}
	})
	p.raise(len(s.Silences), s.SilencesMore)
	if s.Frozen != nil {
		p.line("frozen: " + Paused(*s.Frozen))
	}
	p.troubled("OVERDUE", s.Overdue, s)
	p.runs(s)
	p.troubled("FAILING", s.Failing, s)
	p.troubled("PARKED", s.Parked, s)
	p.table(len(s.Paused.First), []string{"PAUSED", "SINCE", "UNTIL", "BY", "REASON"}, func(t *table) {
		for _, v := range s.Paused.First {
			t.row(store.Subject{Scope: v.Scope, Name: v.Subject}.String(), Instant(v.Since), Instant(v.Until), v.By, v.Reason)
		}
	})
	p.more(s.Paused.Count-len(s.Paused.First), "dbjobs pauses")
	p.table(len(s.Coming), []string{"NEXT HOUR", "IN", "JOB"}, func(t *table) {
		for _, v := range s.Coming {
			t.row(Instant(v.At), cmp.Or(span(v.At.Sub(s.Now)), "now"), v.Job)
		}
	})
	if s.ComingMore { // counting them would read all of them
		p.below("and more: dbjobs upcoming --to '1h from now'")
	}
	if len(s.ToDo) == 0 {
		p.line("nothing to do")
	} else {
		p.line("to do:\n  " + strings.Join(lines(s.ToDo), "\n  "))
	}
	return p.err
}

func lines(list []string) (out []string) {
	for _, text := range list {
		out = append(out, Line(text))
	}
	return out
}

// sections are tables with an empty line between them.
type sections struct {
	w     io.Writer
	begun bool
	err   error
}

// line writes a paragraph.
func (p *sections) line(text string) {
	if p.err != nil {
		return
	}
	if p.begun {
		text = "\n" + text
	}
	p.begun = true
	_, p.err = fmt.Fprintln(p.w, text)
}

// table writes a table if there are rows.
func (p *sections) table(rows int, heading []string, fill func(*table)) {
	if rows == 0 || p.err != nil {
		return
	}
	if p.begun {
		fmt.Fprintln(p.w)
	}
	p.begun = true
	t := newTable(p.w, heading...)
	fill(t)
	p.err = t.flush()
}

// more says how many rows the table above has left out, and which command shows them.
func (p *sections) more(n int, where string) {
	if n > 0 {
		p.below(fmt.Sprintf("and %d more: %s", n, where))
	}
}

// raise says how many rows the table above has left out, and with which limit status shows more of them, if there is one.
func (p *sections) raise(shown, more int) {
	if limit := min(shown+more, MostOfKind); limit > shown {
		p.more(more, fmt.Sprintf("dbjobs status --limit %d", limit))
	} else if more > 0 {
		p.below(fmt.Sprintf("and %d more", more))
	}
}

// below writes a line below a table.
func (p *sections) below(text string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, text)
	}
}

// troubled writes the table of the jobs with one kind of trouble.
func (p *sections) troubled(kind string, list Troubled, s *Status) {
	heading := map[string][]string{"OVERDUE": {kind, "FOR", "SINCE"}, "FAILING": {kind, "FAILED IN A ROW", "LAST SUCCESS", "ERROR"}, "PARKED": {kind, "BECAUSE"}}[kind]
	p.table(len(list.First), heading, func(t *table) {
		for _, j := range list.First {
			switch kind {
			case "OVERDUE":
				t.row(j.Job, span(s.Now.Sub(j.Since)), Instant(j.Since))
			case "FAILING":
				t.row(j.Job, positive(j.Failures), cmp.Or(Instant(j.Since), "never"), j.Error)
			default:
				t.row(j.Job, j.Error)
			}
		}
	})
	if len(list.First) > 0 {
		p.more(list.Count-len(list.First), "dbjobs job list")
	}
}

// runs writes the runs that have not ended.
func (p *sections) runs(s *Status) {
	p.table(len(s.Running.First), []string{"RUNNING", "FOR", "BY", "ID"}, func(t *table) {
		for _, r := range s.Running.First {
			t.row(r.Label(), span(s.Now.Sub(r.StartedAt)), r.Holder, r.ID)
		}
	})
	p.more(s.Running.Count-len(s.Running.First), "dbjobs run list --state running")
	p.table(len(s.Waiting), []string{"WAITING FOR", "RUNS", "SINCE", "SUCH AS"}, func(t *table) {
		for _, v := range s.Waiting {
			t.row(v.Why, count(int64(v.Runs)), span(s.Now.Sub(v.Since)), v.Job)
		}
	})
	p.more(s.WaitingMore, "dbjobs run list --state waiting,queued")
}

// span returns a length of time in its two largest units.
func span(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d < 0:
		return ""
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < time.Hour:
		return store.Duration(d.Truncate(time.Second)).String()
	case d < 2*day:
		return store.Duration(d.Truncate(time.Minute)).String()
	case d%day < time.Hour || d >= 100*day:
		return fmt.Sprintf("%dd", d/day)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// took returns a length of time, to the tenth of a second.
func took(d store.Duration) string {
	if d < store.Duration(10*time.Second) {
		return time.Duration(d).Round(time.Millisecond).String()
	}
	return span(time.Duration(d))
}
