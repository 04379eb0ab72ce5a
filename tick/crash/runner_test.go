package crash

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// runner is a process that ticks: its connections, and its calls on them.
type runner struct {
	w     *world
	calls *storetest.Calls
	store *store.Store
	sql   *executor.SQL
	http  *executor.HTTP
}

func (w *world) runner(url string, calls *storetest.Calls, wrap func(driver.Connector) driver.Connector) (*runner, error) {
	url, err := ticktest.Patient(w.d.Engine, url)
	if err != nil {
		return nil, err
	}
	st, err := store.Open(context.Background(), url, store.Options{Clock: w.now, Chance: noChance, Wrap: wrap})
	if err != nil {
		return nil, err
	}
	x, err := executor.NewSQL(st)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return &runner{w, calls, st, x, caller()}, nil
}

func (p *runner) Close() {
	p.http.Close()
	p.sql.Close()
	p.store.Close()
}

// third is the number of the process that comes after the two sides of a contest.
const third = 2

// staying returns a process that goes on from pass to pass, as the process of a function does. There
// is one for each number. To connect is most of the work of a short pass.
func (w *world) staying(number int) *runner {
	p := w.warm[number]
	if p == nil {
		var err error
		calls := w.calls()
		wrap := calls.Wrap
		if number == third && w.twin == nil {
			wrap = nil // nothing looks at its calls, and without one, the sessions of steps are used again
		}
		if p, err = w.runner(w.d.URL, calls, wrap); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(p.Close)
		if w.warm == nil {
			w.warm = map[int]*runner{}
		}
		w.warm[number] = p
	}
	p.calls.Before, p.calls.After = nil, nil
	p.calls.Reset()
	return p
}

// pass is one process: it connects, runs a pass, and ends. If no fault can come, it is a process that stays.
func (w *world) pass(s *stage, f *fault) (tick.Report, error) {
	w.processes++
	holder := fmt.Sprint("process ", w.processes)
	if f.spent() {
		return w.staying(third).pass(s, holder)
	}
	calls, url := w.calls(), w.d.URL
	wrap := calls.Wrap
	if f.onWire() { // nothing of ours between the program and the driver: only then are the sessions of steps used again
		wire := newWire(w.t, url, f, holder)
		defer wire.Close()
		url, wrap = wire.through(url), nil
	} else {
		f.attach(calls, holder)
	}
	p, err := w.runner(url, calls, wrap)
	if err != nil {
		return tick.Report{}, err
	}
	defer p.Close()
	return p.pass(s, holder)
}

func (p *runner) pass(s *stage, holder string) (tick.Report, error) {
	tk := &tick.Tick{Store: p.store, Name: "test", Holder: holder, Version: "test", Now: p.w.d.Clock.Now, Concurrency: max(s.beside, 1), StartupID: "boot 1",
		Executors: executor.Registry{"sql": p.sql, "act": acting{p.w, p.calls, p.store, holder}, "http": calling{p.calls, p.http},
			"exec": calling{p.calls, running{p.w, "exec"}}, "shell": calling{p.calls, running{p.w, "shell"}}}}
	if s.decide {
		tk.Limit = -1
	}
	if s.silent {
		tk.Late, tk.On = 15*time.Minute, store.Hooks{Late: "told"}
	}
	return tk.Run(context.Background())
}
