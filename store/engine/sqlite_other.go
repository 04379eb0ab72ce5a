//go:build !unix

package engine

// mayFill reports true: the system tells SQLite of a folder.
func mayFill(string) bool { return true }

// mayWrite reports true: the system tells who writes.
func mayWrite(string) bool { return true }

// hardLinks returns 0: not known.
func hardLinks(string) uint64 { return 0 }
