//go:build !linux

package main

// keepPrivate does nothing here. Other systems show a process's variables to its own user, or have no such call.
func keepPrivate() {}
