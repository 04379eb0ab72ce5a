package tick

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// services takes signals in the place of real services. A signal to dead gets no answer; one to another service takes as long as
// answers says.
type services struct {
	mu      sync.Mutex
	asked   map[string]int // by server
	heard   map[string]int
	answers time.Duration
	until   time.Time // back answers no earlier
}

func (s *services) Tell(ctx context.Context, to executor.Heartbeat, _ executor.News) error {
	server := strings.Split(to.URL, "/")[2]
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.count(&s.asked, server)
	wait := time.NewTimer(s.answers)
	defer wait.Stop()
	answer := wait.C
	if server == "dead" {
		answer = nil
	}
	if server == "back" {
		wait.Reset(max(s.answers, time.Until(s.until)))
	}
	select {
	case <-answer:
		s.count(&s.heard, server)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *services) count(of *map[string]int, server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *of == nil {
		*of = map[string]int{}
	}
	(*of)[server]++
}

// succeeds lets a run of a job begin and succeed.
func succeeds(m *monitor, url string, n int) {
	t := &store.Task{Job: store.Job{Name: strconv.Itoa(n), Heartbeat: store.Heartbeat{URL: url}}, Run: store.Run{ID: strconv.Itoa(n), State: store.Running}}
	over := m.watch(t)
	t.Run.State = store.Succeeded
	over()
}

// A service that does not answer keeps no signal from another service.
func TestASilentServiceIsNoOthersLoss(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &services{answers: 20 * time.Millisecond}
		m := newMonitor(t.Context(), s)
		for n := range 200 {
			succeeds(m, "https://dead/"+strconv.Itoa(n), n)
		}
		synctest.Wait()
		for n := range 5 {
			succeeds(m, "https://well/"+strconv.Itoa(n), n)
		}
		m.wait(signalPatience)
		if s.heard["well"] != 10 || m.signals != 400 {
			t.Errorf("the service that answers heard %d signals, and %d are untold; want 10 and 400", s.heard["well"], m.signals)
		}
	})
}

// A service that answers gets the signals of many runs that end at about the same time.
func TestAServiceThatAnswersHearsAll(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &services{answers: 50 * time.Millisecond}
		m := newMonitor(t.Context(), s)
		for n := range 1000 {
			succeeds(m, "https://well", n)
		}
		if m.wait(signalPatience); s.heard["well"] != 2000 || m.signals != 0 {
			t.Errorf("heard %d signals, and %d are untold; want 2000 and 0", s.heard["well"], m.signals)
		}
	})
}

// In long passes, the signals to a service that does not answer, or answers too slowly, do not pile up. A signal that waited
// long would also be wrong: the service would take it for a run of now.
func TestSignalsDoNotPileUp(t *testing.T) {
	for _, server := range []string{"dead", "slow"} {
		bubble.Test(t, func(t *testing.T) {
			s := &services{answers: 4 * time.Second}
			m := newMonitor(t.Context(), s)
			begun := 0
			for range 10 {
				for range 500 {
					succeeds(m, "https://"+server, begun)
					begun++
				}
				time.Sleep(time.Minute)
			}
			synctest.Wait()
			m.mu.Lock()
			left := 2*begun - s.heard[server] - m.signals
			m.mu.Unlock()
			if left > 1000 {
				t.Errorf("%s: %d signals are left of %d; want those of the last minute at most", server, left, 2*begun)
			}
			if asked := s.asked[server]; server == "dead" && asked > begun/2 {
				t.Errorf("the service that does not answer was asked %d times", asked)
			}
			m.wait(signalPatience)
		})
	}
}

// A service that does not answer gets one signal at a time, and each signal that it does not get then has a reason.
func TestASilentServiceGetsOneSignalAtATime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &services{answers: time.Millisecond}
		m := newMonitor(t.Context(), s)
		for n := range 20 {
			succeeds(m, "https://dead", n)
		}
		for more := range 3 {
			time.Sleep(signalPatience)
			if synctest.Wait(); s.asked["dead"] != 21+more {
				t.Errorf("asked %d times, want %d", s.asked["dead"], 21+more)
			}
		}
		time.Sleep(signalAge)
		m.mu.Lock()
		if m.signals != 40 {
			t.Errorf("%d signals are untold after %s, want 40", m.signals, signalAge)
		}
		m.mu.Unlock()
		m.wait(0)
	})
}

// The secret of a heartbeat may be in a file on a file server that is away. The end of the passes waits for that no longer than for a
// service.
func TestASignalWhoseSecretCannotBeRead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		x := executor.NewHTTP(&executor.Host{Secrets: map[string]executor.Secret{"KEY": {Value: hangs}}})
		defer x.Close()
		m := newMonitor(t.Context(), x)
		succeeds(m, "https://ping.example.org/${secret:KEY}", 1)
		began := time.Now()
		m.wait(signalPatience)
		if took := time.Since(began); took != signalPatience || m.signals != 2 {
			t.Errorf("waited for %s, and %d signals are untold: %+v", took, m.signals, m.untold)
		}
	})
}

// A service that did not answer for some seconds, and then does, hears what comes next: its silence ends with its first answer, and one
// signal at a time asks for that.
func TestAServiceThatAnswersAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &services{answers: 20 * time.Millisecond, until: time.Now().Add(signalPatience + 300*time.Millisecond)}
		m := newMonitor(t.Context(), s)
		for n := range 20 {
			succeeds(m, "https://back", n)
		}
		time.Sleep(3 * signalPatience)
		m.wait(signalPatience)
		if s.heard["back"] != 20 || m.signals != 20 {
			t.Errorf("heard %d ends, and %d signals are untold: %+v; want 20 and 20, the starts", s.heard["back"], m.signals, m.untold)
		}
	})
}
