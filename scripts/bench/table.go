package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A sample is one measurement of one contender.
type sample struct {
	took      time.Duration
	processor time.Duration // of the process; 0: not measured; the same holds for the next ones
	active    time.Duration // in which the sessions of the database executed something
	peak      int64         // of the process's resident memory, in bytes
}

// A contender is a row of a table.
type contender struct {
	name    string
	peer    string                 // the name of the row with which it is compared; empty: none
	prepare func() error           // not measured; nil: nothing
	run     func() (sample, error) // one round
	samples []sample
}

// A table is one question, answered by all its contenders in one run.
type table struct {
	title   string
	unit    time.Duration // of the printed times
	times   int           // how often each contender runs in a round, in turn; 0: once
	rows    []*contender
	leftOut []string // peers that are not here, with the reason
}

func (t *table) add(c ...*contender) { t.rows = append(t.rows, c...) }

// measure runs all contenders, in turn.
func (t *table) measure(b *bench) error {
	times := max(1, t.times)
	for n := range b.rounds * times {
		for _, c := range t.rows {
			if err := b.ctx.Err(); err != nil {
				return err
			}
			if c.prepare != nil {
				if err := c.prepare(); err != nil {
					return fmt.Errorf("%s: preparing: %w", c.name, err)
				}
			}
			s, err := c.run()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			c.samples = append(c.samples, s)
			if n%times == times-1 {
				b.say("round %d of %d: %s: %s", n/times+1, b.rounds, c.name, in(s.took, t.unit))
			}
		}
	}
	return nil
}

// of returns one figure of all samples, sorted.
func (c *contender) of(figure func(sample) time.Duration) []time.Duration {
	var all []time.Duration
	for _, s := range c.samples {
		all = append(all, figure(s))
	}
	slices.Sort(all)
	return all
}

func took(s sample) time.Duration      { return s.took }
func processor(s sample) time.Duration { return s.processor }
func active(s sample) time.Duration    { return s.active }

func (c *contender) median(figure func(sample) time.Duration) time.Duration {
	all := c.of(figure)
	return all[len(all)/2]
}

// print writes the table as Markdown, to be pasted.
func (t *table) print(w io.Writer) {
	unit := map[time.Duration]string{time.Second: "s", time.Millisecond: "ms"}[t.unit]
	fmt.Fprintf(w, "\n### %s\n\n| | median, %s | least–greatest | ratio | to | processor | memory, MB |", t.title, unit)
	sessions := slices.ContainsFunc(t.rows, func(c *contender) bool { return c.median(active) > 0 })
	if sessions {
		fmt.Fprint(w, " active in the database |")
	}
	fmt.Fprintf(w, "\n|%s\n", strings.Repeat(" --- |", map[bool]int{false: 7, true: 8}[sessions]))
	for _, c := range t.rows {
		all := c.of(took)
		fmt.Fprintf(w, "| %s | %s | %s–%s |", c.name, in(c.median(took), t.unit), in(all[0], t.unit), in(all[len(all)-1], t.unit))
		if i := slices.IndexFunc(t.rows, func(r *contender) bool { return r.name == c.peer }); i >= 0 && t.rows[i] != c {
			fmt.Fprintf(w, " %.2f | %s |", float64(c.median(took))/float64(t.rows[i].median(took)), c.peer)
		} else {
			fmt.Fprint(w, " | |")
		}
		fmt.Fprintf(w, " %s | %s |", in(c.median(processor), t.unit), megabytes(c.peak()))
		if sessions {
			fmt.Fprintf(w, " %s |", in(c.median(active), t.unit))
		}
		fmt.Fprintln(w)
	}
	if len(t.leftOut) > 0 {
		fmt.Fprintf(w, "\nNot measured: %s.\n", strings.Join(t.leftOut, "; "))
	}
}

func (c *contender) peak() int64 {
	return slices.MaxFunc(c.samples, func(a, b sample) int { return cmp.Compare(a.peak, b.peak) }).peak
}

func megabytes(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", float64(n)/1e6)
}

// in returns d in a unit, with three digits. It is empty if d was not measured.
func in(d, unit time.Duration) string {
	v := float64(d) / float64(unit)
	switch {
	case v == 0:
		return ""
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
