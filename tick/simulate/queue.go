package simulate

import (
	"container/heap"
	"time"
)

// queue holds things by time. When first finds a thing whose time is no longer true, it drops the thing.
type queue[T any] struct{ list items[T] }

type item[T any] struct {
	at   time.Time
	id   string // among equal times, the smaller id comes first
	what T
}

func (q *queue[T]) push(at time.Time, id string, what T) { heap.Push(&q.list, item[T]{at, id, what}) }

// first returns the time of the first thing whose time is still true. It is zero if there is none.
func (q *queue[T]) first(still func(T, time.Time) bool) time.Time {
	for len(q.list) > 0 {
		if i := q.list[0]; still(i.what, i.at) {
			return i.at
		}
		heap.Pop(&q.list)
	}
	return time.Time{}
}

func (q *queue[T]) pop() T { return heap.Pop(&q.list).(item[T]).what }

type items[T any] []item[T]

func (l items[T]) Len() int { return len(l) }
func (l items[T]) Less(i, j int) bool {
	if !l[i].at.Equal(l[j].at) {
		return l[i].at.Before(l[j].at)
	}
	return l[i].id < l[j].id
}
func (l items[T]) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *items[T]) Push(x any)   { *l = append(*l, x.(item[T])) }
func (l *items[T]) Pop() any {
	n := len(*l) - 1
	x := (*l)[n]
	(*l)[n] = item[T]{}
	*l = (*l)[:n]
	return x
}
