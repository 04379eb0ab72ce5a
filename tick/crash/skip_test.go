package crash

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
)

// skips checks that the rich scenario has times that were skipped, and one whose skip was taken back.
func (m *model) skips(t *testing.T) {
	t.Helper()
	for _, line := range []string{"gap chain skipped 12:00:00", "gap replaced skipped 12:00:00", "gap kept skipped 12:00:00"} {
		if !slices.Contains(m.records[3].lines, line) {
			t.Errorf("no line is %q:\n%s", line, strings.Join(m.records[3].lines, "\n"))
		}
	}
	waits := func(l string) bool { return strings.HasPrefix(l, "plan kept ") && strings.Contains(l, "T13:00:00") }
	if !slices.ContainsFunc(m.records[3].lines, waits) {
		t.Errorf("kept has no skip to come:\n%s", strings.Join(m.records[3].lines, "\n"))
	}
	for key := range m.records[4].runs {
		if strings.HasPrefix(key, "chain at:") && strings.Contains(key, "T13:00") {
			return
		}
	}
	t.Error("the time whose skip was taken back has no run")
}

// skipping returns a world with a job that nothing waits for. A test skips times of this job beside a pass.
func skipping(t *testing.T, engine string, tw *twin) *world {
	w := newWorld(t, engine, tw)
	w.define([]store.Job{hourlyOf(patient("hourly", act("act", 0)), "all", "wait-all")})
	w.mustPass(false)
	w.d.Clock.Add(time.Hour)
	return w
}

// besides freezes a process in a call, lets another one do what it can, and then lets the first one go
// on. If the frozen process holds no lock, the other one ends, however busy the machine is. Otherwise
// it waits. Neither may wait for ever.
func (w *world) besides(t *testing.T, call string, locks bool, frozenOne, other func(p *runner) error) {
	t.Helper()
	part := regexp.MustCompile(call)
	f := newFault(frozen, 0, w)
	f.match = func(c storetest.Call) bool {
		return part.MatchString(c.Kind + " " + strings.Join(strings.Fields(c.SQL), " "))
	}
	first, second := w.staying(0), w.staying(1)
	f.attach(first.calls, "first")
	errs := make(chan error, 2)
	go func() { errs <- frozenOne(first) }()
	select {
	case <-f.froze:
	case err := <-errs:
		t.Fatalf("no call matches %s: %v", call, err)
	}
	done := make(chan struct{})
	go func() { errs <- other(second); close(done) }()
	patience := time.Minute
	if locks {
		patience = 300 * time.Millisecond
	}
	select {
	case <-done:
	case <-time.After(patience):
	}
	f.thaw()
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// decideFor lets passes come until all is decided, and returns what is wrong: a time that was skipped
// and runs, or one that is in no run and in no gap.
func (w *world) decideFor(t *testing.T, skipped []store.Skip) (wrong []string) {
	t.Helper()
	for range 4 {
		w.d.Clock.Add(time.Hour)
		w.mustPass(true)
	}
	r, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	wrong = append(wrong, r.wrong...)
	for _, k := range skipped {
		if !slices.Contains(r.lines, "gap hourly skipped "+clock(k.At)) {
			wrong = append(wrong, fmt.Sprintf("%s was skipped, and is not in a gap", clock(k.At)))
		}
	}
	return wrong
}

const (
	writesDecision = `^exec .*INSERT INTO \S*runs`
	writesSkips    = `^exec UPDATE \S*plans SET skips`
)

// A skip comes while a pass decides, and a pass comes while somebody skips. Without the lock of the
// plan, the version that a skip raises keeps the pass from overwriting the skip. Without the version,
// the lock does. Without the lock, a time may be reported as skipped, and run.
func TestASkipBesideADecision(t *testing.T) {
	t.Parallel()
	skipLock := guard{regexp.MustCompile(`(?s)(SELECT job_id FROM \S*plans WHERE \(?job_id .*ORDER BY job_id) FOR UPDATE$`), "$1"}
	bump := guard{regexp.MustCompile(`(SET skips = (?:\$\d+|\?\d*)), version = CASE .* END`), "$1"}
	for _, row := range []struct {
		name        string
		gone        []guard
		first, lost bool // first: the skip is frozen; lost: something is found
	}{
		{name: "guarded"},
		{name: "guarded, the skip first", first: true},
		{name: "without the version", gone: []guard{bump}},
		{name: "without the locks", gone: []guard{planLock, skipLock}},
		{name: "without locks and version", gone: []guard{planLock, skipLock, bump}, lost: true},
		{name: "without the locks, the skip first", gone: []guard{planLock, skipLock}, first: true, lost: true},
	} {
		for _, e := range storetest.Engines(t) {
			if e == "sqlite" { // a transaction that writes is alone there
				continue
			}
			t.Run(e+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				tw := &twin{gone: row.gone}
				w := skipping(t, e, tw)
				var skipped []store.Skip
				skip := func(p *runner) (err error) {
					skipped, err = tick.SkipNext(context.Background(), p.store, "hourly", "", 1, store.Author{})
					return err
				}
				decide := func(p *runner) error {
					_, err := p.pass(&stage{decide: true}, "the one that decides")
					return err
				}
				locks := len(row.gone) < 2
				if row.first {
					w.besides(t, writesSkips, locks, skip, func(p *runner) error { w.d.Clock.Add(time.Hour); return decide(p) })
				} else {
					w.besides(t, writesDecision, locks, decide, skip)
				}
				if kept := tw.kept(e); len(kept) > 0 {
					t.Fatalf("no statement has these guards, which are therefore still there: %q", kept)
				}
				if wrong := w.decideFor(t, skipped); len(skipped) != 1 || len(wrong) > 0 != row.lost {
					t.Errorf("%d skipped; found %q", len(skipped), wrong)
				}
			})
		}
	}
}
