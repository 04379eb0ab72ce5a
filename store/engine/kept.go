package engine

import "sync"

// kept returns a function that calls f only once for each engine. Such results come from texts in the
// program. They never change, and to read the texts takes longer than many commands.
func kept[T any](f func(*Engine) (T, error)) func(*Engine) (T, error) {
	var all sync.Map // of func() (T, error), by *Engine
	return func(e *Engine) (T, error) {
		once, _ := all.LoadOrStore(e, sync.OnceValues(func() (T, error) { return f(e) }))
		return once.(func() (T, error))()
	}
}
