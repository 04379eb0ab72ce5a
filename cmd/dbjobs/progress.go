package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
)

// liveLine is a line of a terminal that is written again and again, to show the progress of a command. Other
// output appears above it.
type liveLine struct {
	w io.Writer

	mu    sync.Mutex
	shown bool
}

// live adds such a line to standard error, until end removes it. In a file, a pipe or a log, and together with
// JSON, there is no such line: then it returns nil.
func (c *cli) live() (l *liveLine, end func()) {
	if c.asJSON || c.logFormat != logs.Text || !report.IsTerminal(c.stderr) {
		return nil, func() {}
	}
	l = &liveLine{w: c.stderr}
	c.stderr = l
	return l, func() {
		c.stderr = l.w
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clear()
	}
}

func (l *liveLine) show(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	fmt.Fprintf(l.w, format, args...)
	l.shown = true
}

func (l *liveLine) clear() {
	if l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.shown = false
	}
}

// Write removes the line before it writes. The line comes back when it has something new to show.
func (l *liveLine) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	return l.w.Write(text)
}

// The line of a pass appears if the pass takes longer than most passes. It does not flicker.
const (
	passIsLong = time.Second
	redrawn    = 250 * time.Millisecond
)

// passProgress shows the progress of a pass, on a terminal.
func (c *cli) passProgress() (progress func(decided, started, ended int), end func()) {
	line, remove := c.live()
	if line == nil {
		return nil, remove
	}
	var mu sync.Mutex
	var decided, started, ended int
	began, done, left := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		t := time.NewTicker(redrawn)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-t.C:
				if long := now.Sub(began); long >= passIsLong {
					mu.Lock()
					text := fmt.Sprintf("%s: %s decided, %s started, %s ended", long.Truncate(time.Second), thousands(decided), thousands(started), thousands(ended))
					mu.Unlock()
					line.show("%s", text)
				}
			}
		}
	}()
	return func(d, s, e int) {
			mu.Lock()
			defer mu.Unlock()
			decided, started, ended = d, s, e
		}, func() {
			close(done)
			<-left
			remove()
		}
}

// thousands returns a number in the form 12,000.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
