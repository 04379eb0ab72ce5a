package crash

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// The faults of the wire break the connection below the driver. So the driver itself says what broke, and whether a
// statement may be sent again.
const (
	wireBefore faultKind = "wire before" // the connection ends, and the request does not arrive
	wireAfter  faultKind = "wire after"  // the request arrives; its answer does not, and the connection ends
)

// onWire reports whether the fault is one of the wire: it strikes at request k of a course, and not at call k.
func (f *fault) onWire() bool { return f.kind == wireBefore || f.kind == wireAfter }

// request counts a request of a process, and returns what happens to it.
func (f *fault) request(text []byte, process string) faultKind {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked++; f.asked != f.k {
		return ""
	}
	f.hit, f.process = storetest.Call{Kind: "request", SQL: strconv.QuoteToASCII(string(text[:min(len(text), 100)]))}, process
	return f.kind
}

// wire stands between a process and its server, and forwards everything until it has to break.
type wire struct {
	net.Listener
	server  string
	fault   *fault
	process string
}

// newWire returns a wire to the server of a URL.
func newWire(t testing.TB, raw string, f *fault, process string) *wire {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l, u.Host, f, process}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // the process has ended
			}
			go w.connect(client)
		}
	}()
	return w
}

// through returns the URL of the server by way of the wire.
func (w *wire) through(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err) // of a test's own database
	}
	u.Host = w.Addr().String()
	return u.String()
}

func (w *wire) connect(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		return
	}
	defer server.Close()
	var mu sync.Mutex
	lost := false // the answer
	go func() {
		defer client.Close()
		defer server.Close()
		for buffer := make([]byte, 1<<16); ; {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			by := w.fault.request(buffer[:n], w.process)
			if by == wireBefore {
				return
			}
			mu.Lock()
			lost = by == wireAfter
			mu.Unlock()
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	for buffer := make([]byte, 1<<16); ; {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		mu.Lock()
		end := lost
		mu.Unlock()
		if end {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// requests returns how many requests each stage sends when nothing breaks. It may be a few more or less the next time.
func (w *world) requests(stages []stage) (list []int) {
	for i := range stages {
		w.restore(fmt.Sprint("before", i))
		counting := newFault(wireBefore, 0, w)
		if err := w.run(&stages[i], counting); err != nil {
			w.t.Fatal(err)
		}
		list = append(list, counting.asked)
	}
	return list
}

// The same with connections that break below the driver, at each request that a process sends, those of its logins
// among them. Nothing stands between the program and the driver, so steps use sessions that others have used.
func TestCrashAtEveryRequestOnTheWire(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" {
			continue // it has no wire
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			stages := stagesOf(e)
			crashes(t, e, stages, func(w *world, _ *model) (list []crash) {
				for i, n := range w.requests(stages) {
					for k := range n {
						list = append(list, crash{stage: i, k: k + 1, kind: wireBefore}, crash{stage: i, k: k + 1, kind: wireAfter})
					}
				}
				t.Logf("%d requests, each broken before it arrives, or before its answer does", len(list)/2)
				return sample(list, bounded[storetest.Dialect(e)])
			})
		})
	}
}
