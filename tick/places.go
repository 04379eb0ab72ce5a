package tick

import "context"

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
