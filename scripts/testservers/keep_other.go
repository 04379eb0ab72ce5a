//go:build unix && !linux

package main

import "syscall"

// dieWithParent does nothing where the kernel offers nothing: a server whose
// keeper was killed by force stays.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
