package crash

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// The faults of the wire break the connection below the driver. So the driver itself says what broke, and whether a
// statement may be sent again.
const (
	wireBefore faultKind = "wire before" // the connection ends, and the next request does not arrive
	wireAfter  faultKind = "wire after"  // the request arrives; its answer does not, and the connection ends
)

// wire stands between a process and its server, and forwards everything until it has to break.
type wire struct {
	net.Listener
	server string

	mu     sync.Mutex
	breaks faultKind // what happens to the next request, on whichever connection
}

// newWire returns a wire to the server of a URL.
func newWire(t testing.TB, raw string) *wire {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, server: u.Host}
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

// broken breaks the next request.
func (w *wire) broken(by faultKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaks = by
}

// strikes returns what happens to a request, once.
func (w *wire) strikes() faultKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	by := w.breaks
	w.breaks = ""
	return by
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
			by := w.strikes()
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

// The same with connections that break below the driver: at each call, before the request arrives and after it. A call that
// sends nothing, such as a COMMIT that went along with the statement before it, breaks the next request.
func TestCrashAtEveryCallOnTheWire(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" {
			continue // it has no wire
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			crashes(t, e, stagesOf(e), func(m *model) []crash {
				return sample(m.with(wireBefore, wireAfter), bounded[storetest.Dialect(e)])
			})
		})
	}
}
