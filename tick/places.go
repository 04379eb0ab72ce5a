package tick

import "context"

// Where nobody says how many runs may execute side by side, a pass begins with fewPlaces, and has mostPlaces where the server
// has a multiple of that to spare: of what it could still give, a pass takes no more than a share, and never less than
// leastPlaces. With more than mostPlaces, short statements took no less time, and long ones took it from each other.
const (
	leastPlaces = 2
	fewPlaces   = 4
	mostPlaces  = 8
	shareOfRoom = 4
)

// grow asks the database, once, how many runs may execute side by side, where there are more to execute than places.
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
