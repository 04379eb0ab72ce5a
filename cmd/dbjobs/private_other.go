//go:build !linux

package main

// keepPrivate does nothing here. Other systems show the variables of a process to its own user in any case, or
// have no such call.
func keepPrivate() {}
