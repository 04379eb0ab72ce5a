//go:build !linux

package storetest

// roomInMemory reports false: other systems have no such folder.
func roomInMemory() bool { return false }
