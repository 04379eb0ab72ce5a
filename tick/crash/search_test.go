package crash

import (
	"slices"
	"sync"

	"github.com/dbjobs/dbjobs/scripts/prove"
)

// search finds the orders that can happen, each once. It lets two sides take their turns, and then gives each turn that was taken
// to the other side, which goes on until it waits or ends. So each round has one change of sides more than the round before, and most
// mistakes show after few changes (Musuvathi and Qadeer, PLDI 2007). A side that waits for a lock of the other side, or has ended,
// cannot take the turn: then the order is one that is tried anyway. Of the orders that differ only in calls beside each other that
// do nothing to each other, one is tried (sleep sets: Godefroid, 1996).
type search struct {
	each               int // how many calls of each side are put in order
	mu                 sync.Mutex
	next               []beginning
	rounds             int
	tried              int // orders
	same, cannot, slow int // those that differ from others in nothing; that cannot happen; in which a call was so slow that this is not certain
}

// beginning is how an order begins.
type beginning struct {
	turns  []int
	tries  int
	before effect // the call that the other side would have made instead of the last one
}

// order completes the turns: the side that had the last one goes on, and then the other side.
func (b *beginning) order(each int) []int {
	var had [2]int
	last := 0
	for _, last = range b.turns {
		had[last]++
	}
	return slices.Concat(b.turns, slices.Repeat([]int{last}, each-had[last]), slices.Repeat([]int{1 - last}, each-had[1-last]))
}

// run lets workers try the orders: all in the long form, otherwise about most of them, half of which are in the first rounds.
func (s *search) run(workers, most int, try func(worker int, order []int) *turns) {
	for ; len(s.next) > 0; s.rounds++ {
		list := s.next
		s.next = nil
		if !prove.Whole() {
			list = spread(list, (most-s.tried+1)/2)
		}
		share(workers, list, func(i int, b beginning) { s.learn(b, try(i, b.order(s.each))) })
	}
}

// learn takes the turns that came of a beginning.
func (s *search) learn(b beginning, t *turns) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	if t.slow {
		s.slow++
	}
	if n := len(b.turns); len(t.did) < n || !slices.Equal(t.did[:n], b.turns) {
		if s.cannot++; t.slow && b.tries < 3 {
			s.next = append(s.next, beginning{b.turns, b.tries + 1, b.before})
		}
		return
	}
	var had [2]int
	last := len(b.turns) - 1
	asleep := false // the other side's call was tried before, and since then came nothing to which that matters
	for i, side := range t.did {
		other := 1 - side
		switch {
		case i < last:
		case i == last:
			asleep = last > 0 && !matters(b.before, t.effects[i])
		case asleep && other == t.did[last]: // what follows has been tried
			s.same++
			return
		case asleep:
			asleep = !matters(b.before, t.effects[i])
		case had[other] < s.each && (!t.only[i] || t.slow):
			s.next = append(s.next, beginning{turns: append(slices.Clone(t.did[:i]), other), before: t.effects[i]})
		}
		had[side]++
	}
}
