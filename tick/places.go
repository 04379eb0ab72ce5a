package tick

import (
	"context"
	"sync"
	"time"
)

// places are where runs execute. The goroutine of the pass shares them with those that execute runs, record ends and send
// heartbeats.
type places struct {
	one   bool          // the runs execute one at a time
	news  chan struct{} // see tell
	hands chan *held    // passes a run to a goroutine that has executed another one, see serve
	over  chan struct{} // closed when these goroutines are no longer needed

	mu     sync.Mutex // guards what follows, and of each held run what changes while it waits or executes
	size   int        // how many runs may execute at the same time: the places
	busy   int        // places that are taken
	line   line
	pace   time.Duration // how long the last runs took, as an average; below 0: no run has ended yet
	paused bool          // everything is paused, as the last record of ends has found
	ended  []*result     // results that are not in the report yet
	// running has all runs that the pass holds: executing, waiting for a place, or ending. Only the goroutine of the pass changes
	// the map, so it may read it without mu.
	running map[delivery]*held
}

// If no setting says how many runs may execute at the same time, a pass begins with fewPlaces. Later it takes one place for
// every shareOfRoom connections that the server could still give: at least leastPlaces, at most mostPlaces. With more than
// mostPlaces, short statements did not get faster, and long ones slowed each other down.
const (
	leastPlaces = 2
	fewPlaces   = 4
	mostPlaces  = 8
	shareOfRoom = 4
)

// grow asks the database, once, how many runs may execute at the same time. It is called if there are more runs than places.
func (p *pass) grow(ctx context.Context) {
	p.asks = false
	left, known, err := p.t.Store.Room(ctx)
	p.mu.Lock()
	if known && err == nil {
		p.size = min(max(left/shareOfRoom, leastPlaces), mostPlaces)
	}
	now := p.size
	p.mu.Unlock()
	p.log.Debug("runs side by side", "places", now, "connections left", left, "error", err)
	p.fill()
}

func (w *workers) init(size int) {
	w.size, w.one, w.asks = size, size == 1, size <= 0
	if w.asks {
		w.size = fewPlaces
	}
	w.pace, w.news, w.running = -1, make(chan struct{}, 1), map[delivery]*held{}
	w.newest = map[string]*held{}
	w.recorder.enough = make(chan struct{}, 1)
	w.hands, w.over = make(chan *held), make(chan struct{})
}
