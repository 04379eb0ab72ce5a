//go:build unix && !linux

package main

// memory finds no folder in memory: other systems have none that is always there.
func memory() (dir string, ok bool) { return "", false }
