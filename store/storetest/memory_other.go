//go:build !linux

package storetest

// roomInMemory finds none: other systems have no such folder.
func roomInMemory() bool { return false }
