package engine

import "sync"

// kept is f, called once for each engine: what is read from the texts in the program is the same each time, and takes longer
// than many a command.
func kept[T any](f func(*Engine) (T, error)) func(*Engine) (T, error) {
	var all sync.Map // of func() (T, error), by *Engine
	return func(e *Engine) (T, error) {
		once, _ := all.LoadOrStore(e, sync.OnceValues(func() (T, error) { return f(e) }))
		return once.(func() (T, error))()
	}
}
