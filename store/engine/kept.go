package engine

import "sync"

// kept returns a function that calls f only once for each engine, or for each Statements. Such results come from texts
// in the program. They never change, and to read the texts takes longer than many commands.
func kept[K comparable, T any](f func(K) (T, error)) func(K) (T, error) {
	var all sync.Map // of func() (T, error), by K
	return func(of K) (T, error) {
		once, _ := all.LoadOrStore(of, sync.OnceValues(func() (T, error) { return f(of) }))
		return once.(func() (T, error))()
	}
}
