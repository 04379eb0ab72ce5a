package engine

import "sync"

// kept returns f, called only once for each engine: the result of reading texts in the program never changes, and
// takes longer than many commands.
func kept[T any](f func(*Engine) (T, error)) func(*Engine) (T, error) {
	var all sync.Map // of func() (T, error), by *Engine
	return func(e *Engine) (T, error) {
		once, _ := all.LoadOrStore(e, sync.OnceValues(func() (T, error) { return f(e) }))
		return once.(func() (T, error))()
	}
}
